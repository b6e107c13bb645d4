"""What hooks do that wait for the gradients of several tensors.

``register_multi_grad_hook(tensors, hook)`` has ``hook(gradients)`` called once the gradients of all tensors are there
that a backward computes; with ``mode="any"``, ``hook(gradient)`` with the first that comes.
"""

from __future__ import annotations

from hookcheck.contract.programs import multi_grad_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
