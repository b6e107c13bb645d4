"""What hooks see of the gradients in and around checkpointed regions.

Checkpointing changes when a forward is run, and not what its gradients are: hooks on modules, tensors and parameters
inside of a region, before and after it and around it are called as often, and with the same gradients, as without it.
"""

from __future__ import annotations

from hookcheck.contract.programs import checkpointed_gradients as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
