"""What hooks do after acts that follow one another in any order.

Each API is promised something by itself; here their acts are mixed: registering (on one module or on all, with
``prepend``, ``with_kwargs``, ``always_call``), removing, calling, differentiating, copying and pickling. A corpus of
sequences is played, and some that are drawn anew, and a model tells what hooks must note during each act.
"""

from __future__ import annotations

from hookcheck.contract.programs import interactions as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
