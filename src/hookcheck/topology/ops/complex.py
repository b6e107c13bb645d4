"""Which operations lead from real tensors to complex ones, and back?

A gradient of a complex tensor is that with respect to its real part plus i times that with respect to its imaginary
part (notes on autograd, 'Autograd for Complex Numbers'). Inputs of the domain ``complex`` must be complex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.ops.rule import Broadcasting, Rule, unbroadcast
from hookcheck.topology.primitive import MOST, Array, Gradients, Shape


@dataclass(frozen=True)
class Complex(Broadcasting):
    """``torch.complex(a, b) = a + ib`` of real tensors: ``da = Re v``, ``db = Im v``."""

    since = "1.8"
    _text = "torch.complex({0}, {1})"

    def value(self, a: Array, b: Array) -> Array:
        """``a + ib``."""
        return a + 1j * b

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """``Re v``, and ``Im v``."""
        return unbroadcast(v.real, a), unbroadcast(v.imag, b)


class _Taken(Rule):
    """A view of a complex tensor."""

    views = True
    since = "1.8"
    _domain = "complex"


@dataclass(frozen=True)
class Real(_Taken):
    """``torch.real(z)``: ``dz = v``."""

    _text = "torch.real({0})"

    def value(self, z: Array) -> Array:
        """``Re z``."""
        return z.real

    def pull(self, v: Array, z: Array) -> Array:
        """``v``."""
        return v + 0j

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """One of the two planes of `ViewAsReal`."""
        return step.alone(np.stack([step.v, 0 * step.v], -1))


@dataclass(frozen=True)
class Imag(_Taken):
    """``torch.imag(z)``: ``dz = iv``."""

    _text = "torch.imag({0})"

    def value(self, z: Array) -> Array:
        """``Im z``."""
        return z.imag

    def pull(self, v: Array, z: Array) -> Array:
        """``iv``."""
        return 1j * v

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """One of the two planes of `ViewAsReal`."""
        return step.alone(np.stack([0 * step.v, step.v], -1))


@dataclass(frozen=True)
class Conj(_Taken):
    """``torch.conj(z)``: ``dz = v̄``; a view only since the release it is given for."""

    since = "1.10"
    _text = "torch.conj({0})"

    def value(self, z: Array) -> Array:
        """``z̄``."""
        return z.conj()

    def pull(self, v: Array, z: Array) -> Array:
        """``v̄``."""
        return v.conj()


@dataclass(frozen=True)
class ViewAsReal(_Taken):
    """``torch.view_as_real(z)``: (...) to (..., 2), real part and imaginary part; ``dz = v₀ + iv₁``."""

    _text = "torch.view_as_real({0})"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with an element and room for one dimension more: torch 2.13 cannot lead back to an empty tensor."""
        return len(shape) < MOST and all(shape)

    def value(self, z: Array) -> Array:
        """Both parts, side by side."""
        return np.stack([z.real, z.imag], -1)

    def pull(self, v: Array, z: Array) -> Array:
        """``v₀ + iv₁``."""
        return v[..., 0] + 1j * v[..., 1]
