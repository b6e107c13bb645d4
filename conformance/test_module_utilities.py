"""What becomes of hooks under the utilities of modules, and what utilities that are made of hooks do.

Conversion, moving, sharing, freezing, ``apply`` and parametrization leave a module's hooks where they are and call
none. Pruning, ``weight_norm`` and ``spectral_norm`` are forward pre-hooks themselves, which compute the weight before
each call.
"""

from __future__ import annotations

from hookcheck.contract.programs import module_utilities as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
