"""What full backward pre-hooks of a module do.

A full backward pre-hook is called as ``hook(module, grad_output)`` before the backward of the module runs; a tuple that
it returns takes the place of ``grad_output`` in all that follows, the gradients of parameters included.
"""

from __future__ import annotations

from hookcheck.contract.programs import full_backward_pre_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
