"""What the handles of hooks do.

Every function that registers a hook gives a handle. Its ``remove()`` takes the hook off, as leaving a ``with`` block
over the handle does. Libraries remove hooks in hooks, and reach into the tables that handles refer to.
"""

from __future__ import annotations

from hookcheck.contract.programs import handles as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
