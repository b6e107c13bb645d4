"""What hooks on tensors do.

``tensor.register_hook(hook)`` has ``hook(grad)`` called whenever a gradient with respect to the tensor is computed. A
gradient that it returns takes the place of the one that it got: in ``.grad`` of a leaf, in what ``torch.autograd.grad``
gives, and in all that is computed from it. ``retain_grad`` keeps the gradient of a tensor that is no leaf.
"""

from __future__ import annotations

from hookcheck.contract.programs import tensor_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
