"""Which operations make fewer numbers of many? Along some dimensions, or over everything."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.ops.rule import Filled, Ranked, Rule, Several, one, some
from hookcheck.topology.primitive import Array, Arrays, Shape


@dataclass(frozen=True)
class Sum(Rule):
    """``x.sum()`` over everything; the gradient is the cotangent in every place."""

    complex_since = "1.8"
    _text = "{0}.sum()"

    def value(self, x: Array) -> Array:
        """``Σ x``."""
        return x.sum()

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` in every place."""
        return np.full(x.shape, v)


class _Whole(Rule):
    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with an element."""
        return all(shape)


@dataclass(frozen=True)
class Mean(_Whole):
    """``x.mean()`` over everything, NaN of nothing; the gradient is the cotangent over the number of elements."""

    complex_since = "1.8"
    _text = "{0}.mean()"

    def value(self, x: Array) -> Array:
        """``Σ x / n``."""
        return x.mean() if x.size else np.asarray(np.nan)

    def pull(self, v: Array, x: Array) -> Array:
        """``v / n`` in every place."""
        return np.full(x.shape, v / max(x.size, 1))


def _tieless(shape: Shape) -> bool:
    """Whether a tensor of that shape has an element, and no two drawn ones are equal (see `values`)."""
    return 0 < prod(shape) <= 96


@dataclass(frozen=True)
class Max(Rule):
    """``x.max()`` over everything; the cotangent goes to the largest element.

    Equal ones share it: the subgradient of least norm (notes on autograd, 'Gradients for non-differentiable
    functions').
    """

    _text = "{0}.max()"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with an element, and none drawn twice."""
        return _tieless(shape)

    def value(self, x: Array) -> Array:
        """The largest."""
        return x.max()

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` at the largest, shared by equal ones."""
        largest = (x == x.max()).astype(x.dtype)
        return v * largest / largest.sum()


@dataclass(frozen=True)
class Prod(Rule):
    """``x.prod()`` over everything; ``dx`` is ``v`` times the conjugated product of all the others."""

    complex_since = "1.9"
    _text = "{0}.prod()"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with an element and few of them: the product of many is soon too large or too small to hold."""
        return 0 < prod(shape) <= 8

    def value(self, x: Array) -> Array:
        """``Π x``."""
        return x.prod()

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` times the product of all the others."""
        flat, one_ = x.conj().ravel(), np.ones(1, x.dtype)
        before = np.cumprod(np.concatenate([one_, flat[:-1]]))
        after = np.cumprod(np.concatenate([one_, flat[:0:-1]]))[::-1]
        return v * (before * after).reshape(x.shape)


@dataclass(frozen=True)
class Norm(_Whole):
    """``x.norm(p)`` over everything, ``(Σ |x|ᵖ)^(1/p)``; ``dx = v sgn(x) (|x| / ‖x‖)ᵖ⁻¹``, 0 where the norm is 0.

    0 is the subgradient of least norm there. Source: the documentation of ``torch.norm``.
    """

    p: int

    _text = "{0}.norm({p})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (draw(st.sampled_from((2, 1, 3))),)

    def value(self, x: Array) -> Array:
        """``(Σ |x|ᵖ)^(1/p)``."""
        return (np.abs(x) ** self.p).sum() ** (1 / self.p)

    def pull(self, v: Array, x: Array) -> Array:
        """``v sgn(x) (|x| / ‖x‖)ᵖ⁻¹``."""
        return v * np.sign(x) * (np.abs(x) / (self.value(x) or 1)) ** (self.p - 1)


class _Over(Filled):
    """A reduction over some dimensions, kept with length 1 or dropped."""

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return some(draw, len(shape)), draw(st.booleans())


def _unsqueezed(reduced: Array, dims: Shape, keepdim: bool) -> Array:
    """What was reduced over ``dims``, with those dimensions of length 1."""
    return reduced if keepdim else np.expand_dims(reduced, dims)


@dataclass(frozen=True)
class SumOver(_Over):
    """``x.sum(dims, keepdim)``; the gradient is the cotangent, repeated along ``dims``."""

    smooth = True

    dims: tuple[int, ...]
    keepdim: bool

    complex_since = "1.8"
    _text = "{0}.sum([{dims}], {keepdim})"

    def value(self, x: Array) -> Array:
        """The sums over ``dims``."""
        return x.sum(self.dims, keepdims=self.keepdim)

    def pull(self, v: Array, x: Array) -> Array:
        """``v``, repeated along ``dims``."""
        return np.broadcast_to(_unsqueezed(v, self.dims, self.keepdim), x.shape)


@dataclass(frozen=True)
class MeanOver(_Over):
    """``x.mean(dims, keepdim)``; the gradient is the cotangent over the number of elements, repeated along ``dims``."""

    smooth = True

    dims: tuple[int, ...]
    keepdim: bool

    complex_since = "1.8"
    _text = "{0}.mean([{dims}], {keepdim})"

    def value(self, x: Array) -> Array:
        """The means over ``dims``."""
        return x.mean(self.dims, keepdims=self.keepdim)

    def pull(self, v: Array, x: Array) -> Array:
        """``v / n``, repeated along ``dims``."""
        return np.broadcast_to(_unsqueezed(v * (v.size / x.size), self.dims, self.keepdim), x.shape)


@dataclass(frozen=True)
class AMax(_Over):
    """``x.amax(dims, keepdim)``; equal largest elements share the cotangent (the documentation of ``torch.amax``)."""

    dims: tuple[int, ...]
    keepdim: bool

    _text = "{0}.amax([{dims}], {keepdim})"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with a dimension and an element, and none drawn twice."""
        return len(shape) > 0 and _tieless(shape)

    def value(self, x: Array) -> Array:
        """The largest along ``dims``."""
        return x.max(self.dims, keepdims=self.keepdim)

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` at the largest, shared by equal ones."""
        largest = (x == x.max(self.dims, keepdims=True)).astype(x.dtype)
        return _unsqueezed(v, self.dims, self.keepdim) * largest / largest.sum(self.dims, keepdims=True)


@dataclass(frozen=True)
class LogSumExp(_Over):
    """``x.logsumexp(dims, keepdim)``: ``log Σ eˣ``; ``dx = v`` times the softmax of ``x`` over ``dims``."""

    dims: tuple[int, ...]
    keepdim: bool

    _text = "{0}.logsumexp([{dims}], {keepdim})"

    def value(self, x: Array) -> Array:
        """``log Σ eˣ``."""
        largest = x.max(self.dims, keepdims=True)
        summed = np.log(np.exp(x - largest).sum(self.dims, keepdims=True)) + largest
        return summed if self.keepdim else summed.squeeze(self.dims)

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` times the softmax of ``x``."""
        exps = np.exp(x - x.max(self.dims, keepdims=True))
        return _unsqueezed(v, self.dims, self.keepdim) * exps / exps.sum(self.dims, keepdims=True)


@dataclass(frozen=True)
class MaxOver(Several):
    """``x.max(dim, keepdim)``: the largest elements and their indices, of equal ones the first.

    The cotangent goes to those elements. Source: the documentation of ``torch.max``.
    """

    dim: int
    keepdim: bool

    _text = "{0}.max({dim}, {keepdim})"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with a dimension and an element, and none drawn twice."""
        return len(shape) > 0 and _tieless(shape)

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return one(draw, len(shape)), draw(st.booleans())

    def value(self, x: Array) -> Arrays:
        """The largest and their indices."""
        indices = x.argmax(self.dim)
        return x.max(self.dim, keepdims=self.keepdim), np.expand_dims(indices, self.dim) if self.keepdim else indices

    def pull(self, v: Array, _: Array, x: Array) -> Array:
        """``v`` at those indices; the second cotangent means nothing."""
        gradient, first = np.zeros_like(x), np.expand_dims(x.argmax(self.dim), self.dim)
        np.put_along_axis(gradient, first, _unsqueezed(v, (self.dim,), self.keepdim), self.dim)
        return gradient


@dataclass(frozen=True)
class Cumsum(Ranked):
    """``x.cumsum(dim)``: ``yᵢ = Σ_{j ≤ i} xⱼ``; ``dxⱼ = Σ_{i ≥ j} vᵢ``."""

    dim: int

    complex_since = "1.9"
    _text = "{0}.cumsum({dim})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (one(draw, len(shape)),)

    def value(self, x: Array) -> Array:
        """``Σ_{j ≤ i} xⱼ``."""
        return x.cumsum(self.dim)

    def pull(self, v: Array, x: Array) -> Array:
        """``Σ_{i ≥ j} vᵢ``."""
        return np.flip(np.flip(v, self.dim).cumsum(self.dim), self.dim)
