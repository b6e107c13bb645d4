"""What hooks do that ``torch.nn.modules.module.register_module_forward_pre_hook`` and its like put on all modules.

They run for every module of the process, before the module's own hooks of their kind, until their handle removes them.
"""

from __future__ import annotations

from hookcheck.contract.programs import global_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
