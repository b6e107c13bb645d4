"""What does a hook that acts do? It scales what it is given, by powers of two, so that it rounds nothing.

Each position has a factor of its own, so that a gradient in the wrong place shows.
"""

from __future__ import annotations

from dataclasses import dataclass

BACKWARD = (2.0, 0.5, 4.0)
"""What gradients at positions 0, 1, 2, 3, … are scaled by, over and over."""

FORWARD = 0.5
"""What the first argument, or every output, is scaled by: small and positive, so that it stays in its domain."""


@dataclass(frozen=True)
class Acts:
    """Which of the things that a module call is given, or gives, its hooks scale.

    ``args``: the first positional argument, where it is a floating tensor. ``outputs``: the floating tensors among the
    outputs, where those are a tensor or a tuple. ``grad_input`` and ``grad_output``: every gradient there.
    """

    args: bool = False
    outputs: bool = False
    grad_input: bool = False
    grad_output: bool = False

    @property
    def backward(self) -> bool:
        """Whether gradients are scaled."""
        return self.grad_input or self.grad_output


NO_ACTS = Acts()


def factor(position: int) -> float:
    """What the gradient at a position is scaled by."""
    return BACKWARD[position % len(BACKWARD)]
