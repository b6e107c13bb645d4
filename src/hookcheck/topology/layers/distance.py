"""Distances between two tensors, along one axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.unary import sgn
from hookcheck.topology.ops.rule import like
from hookcheck.topology.primitive import Array, Gradients, Layer, Operand, Shape, SingleStep


@dataclass(frozen=True)
class CosineSimilarity(SingleStep):
    """``nn.CosineSimilarity``: ``a``, ``b`` (..., D, ...) of one shape to (..., ...), the axis ``dim`` summed away.

    ``y = Σ a b / (α β)`` with ``α = |a|``, ``β = |b|``, both at least ``eps``. ``da = v (b / (α β) - y a / (α |a|))``,
    the second term only where ``|a| > 0``; ``db`` the same with ``a`` and ``b`` swapped. Source: the documentation of
    ``torch.nn.functional.cosine_similarity``, whose bound by ``eps`` is on each norm, and its code, which leaves the
    bound out of the slope (ATen/native/Distance.cpp: ``clamp_min_`` under a NoGradGuard; 2.0 has another slope where
    ``|a| < eps``); else the quotient rule.
    """

    smooth = True
    keywords = ("x1", "x2")
    since = "2.0"  # earlier releases bound the norms of a zero vector otherwise: LY-04
    dim: int = 1
    eps: float = 1e-8

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """At least one dimension."""
        return len(shape) > 0 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Any axis, counted from either end, the default first; ``eps`` stays below every norm."""
        axes = sorted(range(-len(shape), len(shape)), key=lambda axis: axis != 1)
        layer = cls(draw(st.sampled_from(axes)), draw(st.sampled_from([1e-8, 1e-6])))
        return layer, (Operand(shape), Operand(shape))

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)

    def value(self, a: Array, b: Array) -> Array:
        """``a``, ``b`` (..., D, ...) to (..., ...)."""
        return (a * b / (self._norm(a) * self._norm(b))).sum(self.dim)

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """``da`` and ``db`` of the inputs' shape."""
        y, v = (np.expand_dims(t, self.dim) for t in (self.value(a, b), v))
        return self._of_first(v, y, a, b), self._of_first(v, y, b, a)

    def _of_first(self, v: Array, y: Array, a: Array, b: Array) -> Array:
        norm, length = self._norm(a), self._length(a)
        direction = np.divide(a, length, out=np.zeros_like(a), where=length > 0)
        return v * (b / (norm * self._norm(b)) - y * direction / norm)

    def _length(self, x: Array) -> Array:
        return np.sqrt((x**2).sum(self.dim, keepdims=True))

    def _norm(self, x: Array) -> Array:
        return np.maximum(self._length(x), self.eps)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """The sum of the products; the cotangent is repeated along the axis."""
        return step.alone(np.broadcast_to(np.expand_dims(step.v, self.dim), step.inputs[0].shape))


@dataclass(frozen=True)
class PairwiseDistance(Batched):
    """``nn.PairwiseDistance``: ``a``, ``b`` (N, D) to (N,), or (N, 1) with ``keepdim``.

    ``y = (Σ |d|ᵖ)^(1/p)`` with ``d = a - b + eps``. ``da = v sgn(d) |d|^(p - 1) y^(1 - p)`` and ``db = -da``, also of
    complex numbers, whose distance is real. Source: the documentation of ``torch.nn.PairwiseDistance``; the VJP is the
    chain rule.
    """

    keywords = ("x1", "x2")
    sample_since = "1.12"
    complex_since = "1.9"  # tested on complex numbers (OpInfo), whose norm is differentiable from this release on
    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False
    unbatched: bool = False

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, D)."""
        return len(shape) == 2 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Any norm with a slope; no difference is 0, as ``b`` is off the grid of ``a``, or ``eps`` off that of both."""
        eps, domain = draw(st.sampled_from([(1e-6, "unit"), (1 / 32, "real")]))
        layer = cls(draw(st.sampled_from([2.0, 1.0, 3.0, -1.0])), eps, draw(st.booleans()))
        return layer, (Operand(shape), Operand(shape, domain))

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)

    def value(self, a: Array, b: Array) -> Array:
        """``a``, ``b`` (N, D) to (N,) or (N, 1)."""
        powers = np.abs(a - b + self.eps) ** self.p
        return powers.sum(-1, keepdims=self.keepdim) ** (1 / self.p)

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """``da`` and ``db`` (N, D)."""
        y, v = (t.reshape(-1, 1) for t in (self.value(a, b), v))
        d = a - b + self.eps
        da = v * sgn(d) * np.abs(d) ** (self.p - 1) * y ** (1 - self.p)
        return like(da, a), like(-da, b)

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """The norm of the difference."""
        a, b = (x + 0 * y for x, y in zip(step.inputs, reversed(step.inputs)))
        of_difference, _ = self.pull(*self.batched((step.v, a, b), (0, 0, 0)))
        return step.alone(self.bare((of_difference,), (0,))[0])
