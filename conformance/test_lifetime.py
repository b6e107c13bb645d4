"""What hooks keep alive, and what keeps them alive.

A hook lives as long as what it is registered on, or until it is removed by its handle, which holds neither. A graph
holds what its backward needs until it is dropped, and hooks that refer to it are freed with it.
"""

from __future__ import annotations

from hookcheck.contract.programs import lifetime as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
