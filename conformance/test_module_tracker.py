"""What ``ModuleTracker`` knows of the modules that run, in forward and in backward.

It stands on global forward hooks and on hooks that wait for several gradients, and ``FlopCounterMode`` stands on it.
"""

from __future__ import annotations

from hookcheck.contract.programs import module_tracker as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
