"""Which operations overwrite their first input? Their formulas are those of the ones that do not, where there are any.

A second input must broadcast to the first one's shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.ops.arithmetic import Add, Mul, Sub
from hookcheck.topology.ops.elementwise import Clamp, Exp, Scale
from hookcheck.topology.ops.functional import FunctionalReLU, FunctionalSigmoid
from hookcheck.topology.ops.moving import MaskedFill
from hookcheck.topology.ops.rule import Broadcasting, Filled, Rule, one, unbroadcast
from hookcheck.topology.primitive import Array, Gradients, Op, Operand, Shape


class _InPlace:
    writes = True
    _grows = False


@dataclass(frozen=True)
class AddInplace(_InPlace, Add):
    """``a.add_(b)``: the gradients of `Add`."""

    _text = "{0}.add_({1})"


@dataclass(frozen=True)
class SubInplace(_InPlace, Sub):
    """``a.sub_(b)``: the gradients of `Sub`."""

    _text = "{0}.sub_({1})"


@dataclass(frozen=True)
class MulInplace(_InPlace, Mul):
    """``a.mul_(b)``: the gradients of `Mul`, at the ``a`` that was."""

    _text = "{0}.mul_({1})"


@dataclass(frozen=True)
class ScaleInplace(_InPlace, Scale):
    """``x.mul_(number)``: the gradient of `Scale`."""

    _text = "{0}.mul_({number})"


@dataclass(frozen=True)
class ReLUInplace(_InPlace, FunctionalReLU):
    """``torch.relu_(x)``: the gradient of ``nn.ReLU``."""

    _text = "torch.relu_({0})"


@dataclass(frozen=True)
class SigmoidInplace(_InPlace, FunctionalSigmoid):
    """``torch.sigmoid_(x)``: the gradient of ``nn.Sigmoid``."""

    _text = "torch.sigmoid_({0})"


@dataclass(frozen=True)
class ExpInplace(_InPlace, Exp):
    """``torch.exp_(x)``: the gradient of `Exp`."""

    _text = "torch.exp_({0})"


@dataclass(frozen=True)
class ClampInplace(_InPlace, Clamp):
    """``x.clamp_(minimum, maximum)``: the gradient of `Clamp`."""

    _text = "{0}.clamp_({minimum}, {maximum})"


@dataclass(frozen=True)
class MaskedFillInplace(_InPlace, MaskedFill):
    """``x.masked_fill_(mask, number)``: the gradient of `MaskedFill`."""

    _text = "{0}.masked_fill_({1}, {number})"


@dataclass(frozen=True)
class ZeroInplace(_InPlace, Rule):
    """``x.zero_()``: zeros, whatever ``x`` was; ``dx = 0``."""

    complex_since = "1.8"
    _text = "{0}.zero_()"

    def value(self, x: Array) -> Array:
        """Zeros."""
        return np.zeros_like(x)

    def pull(self, v: Array, x: Array) -> Array:
        """Zeros."""
        return np.zeros_like(x)


@dataclass(frozen=True)
class CopyInplace(_InPlace, Broadcasting):
    """``a.copy_(b)``: ``b``, whatever ``a`` was; ``da = 0``, ``db = v``."""

    complex_since = "1.8"
    _text = "{0}.copy_({1})"

    def value(self, a: Array, b: Array) -> Array:
        """``b``, in ``a``'s shape."""
        return np.zeros_like(a) + b

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """Zeros, and ``v``."""
        return np.zeros_like(a), unbroadcast(v, b)


@dataclass(frozen=True)
class IndexFillInplace(_InPlace, Filled):
    """``x.index_fill_(dim, index, number)``: the number at those indices of the dimension; ``dx = v``, 0 there."""

    dim: int
    number: float

    complex_since = "1.9"
    _text = "{0}.index_fill_({dim}, {1}, {number})"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On one or two indices."""
        dim = one(draw, len(shape))
        index = Operand((draw(st.integers(1, 2)),), "index", shape[dim])
        return cls(dim, draw(st.sampled_from((0.0, -1.5)))), (Operand(shape), index)

    def _filled(self, x: Array, index: Array, number: float) -> Array:
        filled = x.copy()
        filled.swapaxes(self.dim, 0)[index] = number
        return filled

    def value(self, x: Array, index: Array) -> Array:
        """``x``, or the number."""
        return self._filled(x, index, self.number)

    def pull(self, v: Array, x: Array, index: Array) -> Gradients:
        """``v``, or 0; None for the index."""
        return self._filled(v, index, 0), None
