"""What becomes of hooks on parameters.

A hook belongs to the tensor that it was registered on. So it stays where a module is converted, moved, frozen or loaded
by copying, all of which keep its parameters, and is gone where another parameter takes the place.
"""

from __future__ import annotations

from hookcheck.contract.programs import parameter_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
