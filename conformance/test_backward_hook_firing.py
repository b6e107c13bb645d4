"""When full backward hooks fire, where releases have been known to be wrong.

Double backward, a loss that starts inside the module, exceptions, gradients of parameters alone, inputs that require no
grad, or that are no tensors, or that come by keyword; each program is a fault that was found in some release.
"""

from __future__ import annotations

from hookcheck.contract.programs import backward_hook_firing as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
