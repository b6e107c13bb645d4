"""What module backward hooks leave alone.

A hook that returns None only looks on. Outputs, gradients of inputs and parameters, and whether there is a gradient at
all must be, bit by bit, what they are without the hook; nothing may raise or warn that did not before.
"""

from __future__ import annotations

from hookcheck.contract.chapters import observers as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_corpus(cell: Cell) -> None:
    """Every clause of this chapter, on every topology of the corpus."""
    cell.check()
