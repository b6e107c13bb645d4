"""Which functional operations stand between modules?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis.strategies import DrawFn

from hookcheck.topology.model import Array, Op, Operand, Shape


@dataclass(frozen=True)
class Add(Op):
    """``a + b`` of equal shapes; both gradients are the cotangent."""

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On real tensors of one shape."""
        return cls(), (Operand(shape), Operand(shape))

    def source(self, *arguments: str) -> str:
        """``a + b``."""
        return " + ".join(arguments)

    def forward(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> tuple[Array, ...]:
        """Two arrays of one shape to their sum."""
        a, b = inputs
        return (a + b,)

    def vjp(
        self, inputs: tuple[Array, ...], parameters: dict[str, Array], cotangents: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], dict[str, Array]]:
        """``(v, v)``."""
        return (cotangents[0], cotangents[0]), {}


@dataclass(frozen=True)
class Mul(Op):
    """``a * b`` of equal shapes; ``da = v b``, ``db = v a``."""

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On real tensors of one shape."""
        return cls(), (Operand(shape), Operand(shape))

    def source(self, *arguments: str) -> str:
        """``a * b``."""
        return " * ".join(arguments)

    def forward(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> tuple[Array, ...]:
        """Two arrays of one shape to their product."""
        a, b = inputs
        return (a * b,)

    def vjp(
        self, inputs: tuple[Array, ...], parameters: dict[str, Array], cotangents: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], dict[str, Array]]:
        """``(v b, v a)``."""
        (a, b), (v,) = inputs, cotangents
        return (v * b, v * a), {}


@dataclass(frozen=True)
class Sum(Op):
    """``x.sum()`` over everything; the gradient is the cotangent in every place."""

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On real tensors of one shape."""
        return cls(), (Operand(shape),)

    def source(self, *arguments: str) -> str:
        """``x.sum()``."""
        return f"{arguments[0]}.sum()"

    def forward(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> tuple[Array, ...]:
        """``x`` of any shape to a 0-dim array."""
        return (np.asarray(inputs[0].sum()),)

    def vjp(
        self, inputs: tuple[Array, ...], parameters: dict[str, Array], cotangents: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], dict[str, Array]]:
        """``v`` spread over ``x``'s shape."""
        return (np.full(inputs[0].shape, cotangents[0]),), {}


@dataclass(frozen=True)
class Mean(Op):
    """``x.mean()`` over everything; the gradient is the cotangent over the number of elements."""

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On real tensors of one shape."""
        return cls(), (Operand(shape),)

    def source(self, *arguments: str) -> str:
        """``x.mean()``."""
        return f"{arguments[0]}.mean()"

    def forward(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> tuple[Array, ...]:
        """``x`` of any shape to a 0-dim array."""
        return (np.asarray(inputs[0].mean()),)

    def vjp(
        self, inputs: tuple[Array, ...], parameters: dict[str, Array], cotangents: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], dict[str, Array]]:
        """``v / n`` spread over ``x``'s shape."""
        (x,) = inputs
        return (np.full(x.shape, cotangents[0] / x.size),), {}
