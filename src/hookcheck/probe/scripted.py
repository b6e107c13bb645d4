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


class Scaled(nn.Module):
    """Gives the factor times x; the factor has a default, 2."""

    def forward(self, x: Tensor, factor: float = 2.0) -> Tensor:
        """The tensor of any shape, scaled."""
        return factor * x


class Leaving(nn.Module):
    """Gives what its only child gives, whose factor it leaves at its default: 2x."""

    def __init__(self) -> None:
        """Makes the child."""
        super().__init__()
        self.inner = Scaled()

    def forward(self, x: Tensor) -> Tensor:
        """The tensor of any shape, doubled."""
        given: Tensor = self.inner(x)
        return given


class Naming(Leaving):
    """Gives what its only child gives, whose factor it gives by keyword: 4x."""

    def forward(self, x: Tensor) -> Tensor:
        """The tensor of any shape, times 4."""
        given: Tensor = self.inner(x, factor=4.0)
        return given


class Giving(Leaving):
    """Gives what its only child gives, whose factor it gives by position: 4x."""

    def forward(self, x: Tensor) -> Tensor:
        """The tensor of any shape, times 4."""
        given: Tensor = self.inner(x, 4.0)
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


def passes_on(self: nn.Module, input: Tuple[Tensor, float]) -> Tuple[Tensor, float]:  # noqa: UP006
    """A forward pre-hook of `Scaled` that gives back all that it gets."""
    return input


def adds_ten(self: nn.Module, input: Tuple[Tensor, float], output: Tensor) -> Tensor:  # noqa: UP006
    """A forward hook of `Scaled` that adds 10 to the output."""
    return output + 10


def _floored(self: nn.Module, input: Tuple[Tensor], output: Tensor) -> Tensor:  # noqa: UP006
    """A forward hook that TorchScript cannot compile, and that adds 0."""
    import math

    return output + math.floor(0.5)


ignored = torch.jit.ignore(_floored)  # type: ignore[no-untyped-call]
"""A forward hook that scripts are told to ignore."""


class ExportingAlone(nn.Module):
    """Has an exported method that gives what its only child gives: 2x; and no forward."""

    def __init__(self) -> None:
        """Makes the child."""
        super().__init__()
        self.inner = Double()

    @torch.jit.export
    def twice(self, x: Tensor) -> Tensor:
        """The tensor of any shape, doubled."""
        given: Tensor = self.inner(x)
        return given


class Exporting(ExportingAlone):
    """The same with a forward that does that as well."""

    def forward(self, x: Tensor) -> Tensor:
        """The tensor of any shape, doubled."""
        given: Tensor = self.inner(x)
        return given
