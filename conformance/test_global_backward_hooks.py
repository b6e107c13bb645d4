"""What full backward hooks and pre-hooks do that are put on all modules.

They are called as a module's own, ``hook(module, grad_input, grad_output)`` and ``hook(module, grad_output)``, before
them, and may replace grad_input and grad_output.
"""

from __future__ import annotations

from hookcheck.contract.programs import global_backward_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
