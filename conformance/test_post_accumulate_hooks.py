"""What hooks do that run once a leaf's gradient has been accumulated.

``leaf.register_post_accumulate_grad_hook(hook)`` has ``hook(leaf)`` called when autograd has updated ``leaf.grad``. It
gets the tensor, not the gradient, and may change both: optimizers take a parameter's step in it.
"""

from __future__ import annotations

from hookcheck.contract.programs import post_accumulate_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
