"""What becomes of hooks in pickle, ``torch.save`` and ``torch.load``.

A module takes its hooks along wherever it is pickled whole, as far as pickle can take them: functions of a module,
partials, objects and bound methods can be, lambdas and closures cannot. A state_dict has no hooks, nor have parameters
and optimizers that come from a pickle. A handle that is pickled with its module belongs to the restored one.
"""

from __future__ import annotations

from hookcheck.contract.programs import serialization as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
