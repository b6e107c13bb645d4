"""What FSDP and fully_shard do with hooks.

Both gather the parameters of a module before it needs them and free them afterwards: fully_shard by forward pre-hooks
and forward hooks on the module. FSDP takes a communication hook, ``hook(state, grad)``.
"""

from __future__ import annotations

from hookcheck.contract.programs import sharded as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
