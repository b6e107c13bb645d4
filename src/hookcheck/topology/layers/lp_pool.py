"""Pooling by a power mean: y = (Σ xᵖ)^(1/p) over each window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.pooling_windows import (
    Size,
    Sliding,
    drawn_kernel,
    drawn_stride,
    joined,
    members,
    output_shape,
    per_dimension,
    settled,
    spread,
    starts,
)
from hookcheck.topology.primitive import Array, Layer, Operand, Shape


@dataclass(frozen=True)
class LPPool1d(Batched, Sliding):
    """``nn.LPPool1d``: ``x`` (N, C, L) to ``y`` (N, C, L'), ``y = s^(1/p)``, ``s[o] = Σ A[o, i] x[i]ᵖ``, p the norm.

    ``A[o, i]`` is 1 where window ``o`` holds position ``i``. One that goes off-bounds, as ``ceil_mode`` lets it, is
    scaled up: ``s`` is the number of positions of a full window times the average of ``xᵖ`` over those that this one
    holds ('power-average pooling'). With cotangent ``v``: ``dx[i] = x[i]ᵖ⁻¹ Σ A[o, i] s[o]^(1/p − 1) v[o]``, a window
    with ``s = 0`` left out ('will set the gradient to zero in this case').
    An odd root of a negative sum is not a number, in torch as here.
    Source: the documentation of ``torch.nn.LPPool1d`` and of ``torch.nn.functional.lp_pool1d``.
    """

    dims: ClassVar[int] = 1

    norm_type: float
    kernel_size: Size
    stride: Size | None = None
    ceil_mode: bool = False
    unbatched: bool = False

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Windows that the input covers; for the odd norms positive numbers, whose sums are positive."""
        norm = draw(st.sampled_from([2, 1, 3]))
        layer = cls(norm, settled(drawn_kernel(draw, shape[2:])), drawn_stride(draw, cls.dims), draw(st.booleans()))
        return layer, (Operand(shape, "real" if norm == 2 else "positive"),)

    def value(self, x: Array) -> Array:
        """``x`` (N, C, ...) to ``y`` (N, C, windows of each dimension)."""
        weights = self._weights(x.shape[2:])
        y = (spread(x) ** self.norm_type @ joined(weights).T.astype(x.dtype)) ** (1 / self.norm_type)
        return y.reshape(output_shape(x, weights))

    def pull(self, v: Array, x: Array) -> Array:
        """``dx`` of ``x``'s shape."""
        flat, p = spread(x), self.norm_type
        weights = joined(self._weights(x.shape[2:])).astype(x.dtype)
        sums = flat**p @ weights.T
        slope = np.where(sums == 0, 0, np.where(sums == 0, 1, sums) ** (1 / p - 1))
        return (flat ** (p - 1) * ((spread(v) * slope) @ weights)).reshape(x.shape)

    def _weights(self, extent: Shape) -> list[Array]:
        """The factors of ``A``, one a spatial dimension."""
        weights = []
        for n, k, s in per_dimension(extent, self.kernel_size, self.stride or self.kernel_size):
            held = members(n, starts(n, k, s, 0, 1, self.ceil_mode), k)
            weights.append(held * (k / held.sum(-1, keepdims=True)))
        return weights

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """The root of the sums; where one is 0, so is its root, and the slope there is infinite."""
        (whole,) = self.batched(step.inputs, (0,))
        x, p = spread(whole), self.norm_type
        sums = x**p @ joined(self._weights(whole.shape[2:])).astype(x.dtype).T
        with np.errstate(divide="ignore", invalid="ignore"):
            return step.alone(step.v * (sums ** (1 / p - 1) / p).reshape(step.v.shape))


@dataclass(frozen=True)
class LPPool2d(LPPool1d):
    """``nn.LPPool2d``: `LPPool1d` over the two dimensions of ``x`` (N, C, H, W)."""

    dims: ClassVar[int] = 2


@dataclass(frozen=True)
class LPPool3d(LPPool1d):
    """``nn.LPPool3d``: `LPPool1d` over the three dimensions of ``x`` (N, C, D, H, W)."""

    since = "2.3"  # in the release notes' list of new features (pytorch#114199)
    dims: ClassVar[int] = 3
