"""Which ways of using a module go past its hooks, or trip over them.

Hooks run where a module is called. A container that takes a fused path, or reads the weights of a submodule instead of
calling it, leaves them out.
"""

from __future__ import annotations

from hookcheck.contract.programs import call_path as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
