"""What hooks on tensors receive, on every network.

A hook on a leaf is called with its gradient, once for each backward pass that computes it; a post-accumulate-grad hook
finds the new sum in ``.grad``. A hook that a forward hook puts on a module's output is what many libraries use in the
place of a backward hook: it receives the gradient of that very tensor, all of its uses counted.
"""

from __future__ import annotations

from hookcheck.contract.chapters import tensors as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_corpus(cell: Cell) -> None:
    """Every clause of this chapter, on every topology of the corpus."""
    cell.check()
