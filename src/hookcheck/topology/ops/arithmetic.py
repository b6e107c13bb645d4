"""Which operations compute with two tensors, element by element? Their shapes broadcast (torch's broadcasting notes).

Gradients are given before broadcasting is undone: each is summed over the axes along which its tensor was repeated.
Bars are complex conjugates (notes on autograd, 'Autograd for Complex Numbers').
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis.strategies import DrawFn

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.ops.rule import Broadcasting, Rule, companion, unbroadcast
from hookcheck.topology.primitive import Array, Gradients, Op, Operand, Shape


@dataclass(frozen=True)
class Add(Broadcasting):
    """``a + b``: ``da = v``, ``db = v``."""

    smooth = True
    complex_since = "1.8"
    _text = "{0} + {1}"

    def value(self, a: Array, b: Array) -> Array:
        """``a + b``."""
        return a + b

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """``v``, and ``v``."""
        return unbroadcast(v, a), unbroadcast(v, b)


@dataclass(frozen=True)
class Sub(Broadcasting):
    """``a - b``: ``da = v``, ``db = −v``."""

    smooth = True
    complex_since = "1.8"
    _text = "{0} - {1}"

    def value(self, a: Array, b: Array) -> Array:
        """``a - b``."""
        return a - b

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """``v``, and ``−v``."""
        return unbroadcast(v, a), unbroadcast(-v, b)


@dataclass(frozen=True)
class Mul(Broadcasting):
    """``a * b``: ``da = v b̄``, ``db = v ā``."""

    smooth = True
    complex_since = "1.8"
    _text = "{0} * {1}"

    def value(self, a: Array, b: Array) -> Array:
        """``a b``."""
        return a * b

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """``v b̄``, and ``v ā``."""
        return unbroadcast(v * b.conj(), a), unbroadcast(v * a.conj(), b)


@dataclass(frozen=True)
class Div(Broadcasting):
    """``a / b`` with ``b`` away from 0: ``da = v / b̄``, ``db = −v ā / b̄²``."""

    complex_since = "1.8"
    _text = "{0} / {1}"
    _other = "positive"

    def value(self, a: Array, b: Array) -> Array:
        """``a / b``."""
        return a / b

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """``v / b̄``, and ``−v ā / b̄²``."""
        da = v / b.conj()
        return unbroadcast(da, a), unbroadcast(-da * (a / b).conj(), b)


@dataclass(frozen=True)
class Maximum(Broadcasting):
    """``torch.maximum(a, b)``: the cotangent goes to the larger one.

    Equal ones share it: the subgradient of least norm (notes on autograd, 'Gradients for non-differentiable
    functions'). Drawn numbers are never equal: the second's lie between those that the first can have.
    """

    _text = "torch.maximum({0}, {1})"
    _other = "unit"

    def value(self, a: Array, b: Array) -> Array:
        """The larger of each two."""
        return np.maximum(a, b)

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """The shares of ``v``."""
        share = np.heaviside(a - b, 0.5)
        return unbroadcast(v * share, a), unbroadcast(v * (1 - share), b)


@dataclass(frozen=True)
class Minimum(Maximum):
    """``torch.minimum(a, b)``: the cotangent goes to the smaller one; equal ones share it, as in `Maximum`."""

    _text = "torch.minimum({0}, {1})"

    def value(self, a: Array, b: Array) -> Array:
        """The smaller of each two."""
        return np.minimum(a, b)

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """The shares of ``v``."""
        return super().pull(v, -a, -b)


@dataclass(frozen=True)
class Where(Rule):
    """``torch.where(mask, a, b)``: ``da = v`` where the mask is set, ``db = v`` where it is not, 0 elsewhere.

    The mask comes last among the inputs, so that the first one is differentiable.
    """

    complex_since = "1.8"
    _text = "torch.where({2}, {0}, {1})"

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On a second tensor and a mask whose shapes broadcast with the first one's."""
        mask = companion(draw, shape, grows=False) or (1,)
        return cls(), (Operand(shape), Operand(companion(draw, shape)), Operand(mask, "mask"))

    def value(self, a: Array, b: Array, mask: Array) -> Array:
        """``a`` or ``b``."""
        return np.where(mask, a, b)

    def pull(self, v: Array, a: Array, b: Array, mask: Array) -> Gradients:
        """``v`` where each was taken; None for the mask."""
        return unbroadcast(np.where(mask, v, 0), a), unbroadcast(np.where(mask, 0, v), b), None

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Of both tensors, be they of integers; up to 1.11 after they were broadcast (pytorch#73579)."""
        if step.release >= (1, 12):
            return ((step.of(0), step.of(1)),)
        mask = step.inputs[2]
        return ((step.inner(np.where(mask, step.v, 0), 0), step.inner(np.where(mask, 0, step.v), 1)),)
