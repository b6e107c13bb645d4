"""What do the layers share that make one tensor of one tensor, with nothing to learn?"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import MISSING, field, fields
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.primitive import Array, Layer, Operand, Shape, SingleStep


def drawn(*options: Any, default: Any = MISSING) -> Any:
    """A field that `Unary.fitting` draws from these options, the simplest first."""
    return field(default=default, metadata={"options": options})


class Unary(SingleStep):
    """A layer from ``x`` to ``y = value(x)`` whose settings are `drawn`."""

    @property
    def writes(self) -> bool:
        """Whether ``inplace`` is set."""
        return bool(getattr(self, "inplace", False))

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape, empty ones too."""
        return True

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Each setting by itself, on a real tensor."""
        kind: Any = cls
        return kind(*(draw(st.sampled_from(f.metadata["options"])) for f in fields(kind))), (Operand(shape),)

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)


class Elementwise(Unary):
    """``y = f(x)`` element by element: ``dx = v · f'(x)``, the slope conjugated where ``f`` is complex."""

    def pull(self, v: Array, x: Array) -> Array:
        """``v · f'(x)``."""
        return v * np.conj(self.slope(x))

    @abstractmethod
    def slope(self, x: Array) -> Array:
        """``f'(x)``."""


def sigmoid(x: Array) -> Array:
    """``σ(x) = 1 / (1 + e⁻ˣ)``, on which many activations stand."""
    return 1 / (1 + np.exp(-x))


def conjugated(inputs: tuple[Array, ...], parameters: dict[str, Array]) -> tuple[tuple[Array, ...], dict[str, Array]]:
    """Where a VJP of real numbers is taken so that it is that of complex ones.

    The gradient is the cotangent times the conjugate of ``f'(z)`` (notes on autograd, 'Autograd for Complex Numbers'),
    and that is ``f'(z̄)`` where ``f`` is a power series with real coefficients.
    """
    return tuple(map(np.conj, inputs)), {name: np.conj(array) for name, array in parameters.items()}


def sgn(x: Array) -> Array:
    """``x / |x|``, and 0 at 0: the sign of a real number, the direction of a complex one."""
    size = np.abs(x)
    return x / np.where(size == 0, 1, size)
