"""What becomes of hooks on the Node that accumulates a leaf's gradient.

Such a Node is found behind any view of the leaf. Distributed training put its hooks there long before there were
post-accumulate hooks; how long it lives decides how long they do.
"""

from __future__ import annotations

from hookcheck.contract.programs import accumulate_grad as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
