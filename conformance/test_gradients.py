"""What module backward hooks receive.

A hook is called as ``hook(module, grad_input, grad_output)``. Both are tuples: one entry for each positional argument
and for each output, None where there is no Tensor or no gradient. ``grad_input`` is the gradient along paths through
this very call, ``grad_output`` the total over all that consume the output. Every number is held against the oracle's.
"""

from __future__ import annotations

from hookcheck.contract.chapters import gradients as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_corpus(cell: Cell) -> None:
    """Every clause of this chapter, on every topology of the corpus."""
    cell.check()
