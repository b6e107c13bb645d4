"""Softmaxes: exponentials that add up to one along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.unary import Unary
from hookcheck.topology.primitive import Array, Layer, Operand, Shape


def softmax(x: Array, axis: int) -> Array:
    """``eˣ / Σ eˣ``; the largest is taken off first, which changes nothing but keeps ``eˣ`` finite."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def softmax_pull(v: Array, y: Array, axis: int) -> Array:
    """``y (v − Σ y v)`` for ``y`` a softmax: its Jacobian is ``diag(y) − y yᵀ``."""
    return y * (v - (y * v).sum(axis, keepdims=True))


class _Along(Unary):
    dim: int

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """One dimension or more."""
        return len(shape) > 0 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Along any axis, counted from the back or from the front."""
        kind: Any = cls
        rank = len(shape)
        return kind(draw(st.sampled_from([*range(-1, -rank - 1, -1), *range(rank)]))), (Operand(shape),)


@dataclass(frozen=True)
class Softmax(_Along):
    """``nn.Softmax(dim)``: ``y = eˣ / Σ eˣ`` along ``dim``; ``dx = y (v − Σ y v)``.

    Source: the documentation of ``torch.nn.Softmax``. Without ``dim``, which torch deprecates, there is none here.
    """

    smooth = True
    rounded_once = True

    dim: int

    def value(self, x: Array) -> Array:
        """``eˣ / Σ eˣ``."""
        return softmax(x, self.dim)

    def pull(self, v: Array, x: Array) -> Array:
        """``y (v − Σ y v)``."""
        return softmax_pull(v, self.value(x), self.dim)


@dataclass(frozen=True)
class Softmin(_Along):
    """``nn.Softmin(dim)``: the softmax of ``−x``; ``dx = −y (v − Σ y v)``.

    Source: the documentation of ``torch.nn.Softmin``.
    """

    smooth = True

    dim: int

    def value(self, x: Array) -> Array:
        """``e⁻ˣ / Σ e⁻ˣ``."""
        return softmax(-x, self.dim)

    def pull(self, v: Array, x: Array) -> Array:
        """``−y (v − Σ y v)``."""
        return -softmax_pull(v, self.value(x), self.dim)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """The softmax of ``−x``."""
        gradient = self.pull(step.v, step.inputs[0])
        return step.alone(-gradient)


@dataclass(frozen=True)
class LogSoftmax(_Along):
    """``nn.LogSoftmax(dim)``: ``y = x − log Σ eˣ`` along ``dim``; ``dx = v − softmax(x) Σ v``.

    Source: the documentation of ``torch.nn.LogSoftmax``.
    """

    smooth = True
    rounded_once = True

    dim: int

    def value(self, x: Array) -> Array:
        """``x − log Σ eˣ``."""
        shifted = x - x.max(self.dim, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(self.dim, keepdims=True))

    def pull(self, v: Array, x: Array) -> Array:
        """``v − softmax(x) Σ v``."""
        return v - softmax(x, self.dim) * v.sum(self.dim, keepdims=True)


@dataclass(frozen=True)
class Softmax2d(Unary):
    """``nn.Softmax2d``: ``x`` (N, C, H, W), a softmax over the channels of each pixel.

    ``y = eˣ / Σ_c eˣ``, ``dx = y (v − Σ_c y v)``. Source: the documentation of ``torch.nn.Softmax2d``.
    """

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, H, W)."""
        return len(shape) == 4 and all(shape)

    def value(self, x: Array) -> Array:
        """``eˣ / Σ_c eˣ``."""
        return softmax(x, 1)

    def pull(self, v: Array, x: Array) -> Array:
        """``y (v − Σ_c y v)``."""
        return softmax_pull(v, self.value(x), 1)
