"""What becomes of hooks where ``copy.copy`` or ``copy.deepcopy`` copies a module, a parameter or an optimizer.

A deepcopy of a module has tables of hooks of its own, with the same functions in them; a shallow copy has the tables of
the original. Parameters and optimizers leave their hooks behind.
"""

from __future__ import annotations

from hookcheck.contract.programs import copying as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
