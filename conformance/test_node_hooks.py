"""What hooks on Nodes of the autograd graph do.

``tensor.grad_fn`` is the Node of the operation that made the tensor. A pre-hook is called as ``hook(grad_outputs)``
before the Node runs, a post-hook as ``hook(grad_inputs, grad_outputs)`` after it; both may return a tuple that replaces
the first of these. Module hooks are made of them, and libraries use them and the engine's private calls directly.
"""

from __future__ import annotations

from hookcheck.contract.programs import node_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
