"""Which modules and hooks does TorchScript compile? Those with annotations that it can read, as here.

It takes annotations for objects, so this module does without ``from __future__ import annotations``; and up to torch
1.8 it takes a comment that begins with "type:" for an annotation, whatever follows, so functions have none.
"""

from typing import Tuple  # noqa: UP035 -- TorchScript of torch 1.7 knows no tuple[...]

import torch
from torch import Tensor, nn


class Double(nn.Module):
    """Gives 2x."""

    def forward(self, x: Tensor) -> Tensor:
        """The tensor of any shape, doubled."""
        return 2 * x


class Outer(nn.Module):
    """Gives what its only child gives: 2x."""

    def __init__(self) -> None:
        """Makes the child."""
        super().__init__()
        self.inner = Double()

    def forward(self, x: Tensor) -> Tensor:
        """The tensor of any shape, doubled."""
        given: Tensor = self.inner(x)
        return given


def adds_one(self: nn.Module, input: Tuple[Tensor], output: Tensor) -> Tensor:  # noqa: UP006
    """A forward hook that adds 1 to the output."""
    return output + 1


def doubles(self: nn.Module, input: Tuple[Tensor], output: Tensor) -> Tensor:  # noqa: UP006
    """A forward hook that doubles the output."""
    return output * 2


def triples(self: nn.Module, input: Tuple[Tensor]) -> Tuple[Tensor]:  # noqa: UP006
    """A forward pre-hook that triples the input."""
    return (3 * input[0],)


def _floored(self: nn.Module, input: Tuple[Tensor], output: Tensor) -> Tensor:  # noqa: UP006
    """A forward hook that TorchScript cannot compile, and that adds 0."""
    import math

    return output + math.floor(0.5)


ignored = torch.jit.ignore(_floored)  # type: ignore[no-untyped-call]
"""A forward hook that scripts are told to ignore."""
