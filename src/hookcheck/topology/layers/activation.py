"""Element-wise layers without parameters: y = f(x), dx = v · f'(x)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from hypothesis.strategies import DrawFn

from hookcheck.topology.model import Array, Layer, Operand, Shape


class _Elementwise(Layer):
    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape, empty ones too."""
        return True

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """The layer, on a real tensor of any shape."""
        return cls(), (Operand(shape),)

    def source(self) -> str:
        """The constructor call."""
        return f"nn.{type(self).__name__}()"

    def forward(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> tuple[Array, ...]:
        """``x`` of any shape to ``f(x)`` of the same shape."""
        return (self.value(inputs[0]),)

    def vjp(
        self, inputs: tuple[Array, ...], parameters: dict[str, Array], cotangents: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], dict[str, Array]]:
        """``v · f'(x)``, of ``x``'s shape."""
        return (cotangents[0] * self.slope(inputs[0]),), {}

    @abstractmethod
    def value(self, x: Array) -> Array:
        """``f(x)``."""

    @abstractmethod
    def slope(self, x: Array) -> Array:
        """``f'(x)``."""


@dataclass(frozen=True)
class Sigmoid(_Elementwise):
    """``nn.Sigmoid``: ``σ(x) = 1 / (1 + e⁻ˣ)``, ``σ' = σ (1 − σ)``."""

    def value(self, x: Array) -> Array:
        """``σ(x)``."""
        y: Array = 1 / (1 + np.exp(-x))
        return y

    def slope(self, x: Array) -> Array:
        """``σ(x) (1 − σ(x))``."""
        y = self.value(x)
        slope: Array = y * (1 - y)
        return slope


@dataclass(frozen=True)
class Tanh(_Elementwise):
    """``nn.Tanh``: ``tanh' = 1 − tanh²``."""

    def value(self, x: Array) -> Array:
        """``tanh(x)``."""
        y: Array = np.tanh(x)
        return y

    def slope(self, x: Array) -> Array:
        """``1 − tanh(x)²``."""
        slope: Array = 1 - self.value(x) ** 2
        return slope


@dataclass(frozen=True)
class ReLU(_Elementwise):
    """``nn.ReLU``: ``max(0, x)``; the slope at 0 is 0, as torch documents for its kinks (notes on autograd)."""

    def value(self, x: Array) -> Array:
        """``max(0, x)``."""
        y: Array = np.maximum(x, 0)
        return y

    def slope(self, x: Array) -> Array:
        """1 where ``x > 0``, else 0."""
        return (x > 0).astype(float)
