"""How long backward hooks, and what they hold, live.

Removal between forward and backward, or by the hook itself; memory after backward; modules that are gone by then;
threads that share a graph, or that register at once; each program is a fault that was found in some release.
"""

from __future__ import annotations

from hookcheck.contract.programs import backward_hook_lifetimes as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
