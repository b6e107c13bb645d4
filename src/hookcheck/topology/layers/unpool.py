"""Unpooling: values go back to the places that a max pooling took them from, zeros to the others."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.pooling_windows import (
    Pool,
    Size,
    drawn_stride,
    per_dimension,
    settled,
    spread,
)
from hookcheck.topology.primitive import Array, Gradients, Layer, Operand, Shape
from hookcheck.topology.tree import Literal, Pack, Tree


@dataclass(frozen=True)
class MaxUnpool1d(Pool):
    """``nn.MaxUnpool1d``: ``x`` and indices ``i`` (N, C, L) to ``y`` (N, C, L'), ``y[n, c, i[n, c, l]] = x[n, c, l]``.

    ``L' = (L − 1)·stride − 2·padding + kernel_size``, or ``output_size`` where a call gives it; an index counts in the
    flattened output plane. With cotangent ``v``: ``dx[n, c, l] = v[n, c, i[n, c, l]]``; the indices have none.
    Source: the documentation of ``torch.nn.MaxUnpool1d``.
    """

    keywords = ("input", "indices")
    dims: ClassVar[int] = 1

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    output_size: tuple[int, ...] | None = None

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """An output that is no smaller than the input along any dimension, so that all indices can differ."""
        extent = shape[2:]
        kernel = tuple(draw(st.integers(1, 3)) for _ in extent)
        stride = drawn_stride(draw, cls.dims)
        sizes = list(per_dimension(extent, kernel, stride or kernel))
        padding = tuple(draw(st.integers(0, min(k // 2, ((n - 1) * s + k - n) // 2))) for n, k, s in sizes)
        layer = cls(settled(kernel), stride, settled(padding))
        if draw(st.booleans()):
            asked = tuple(
                draw(st.integers(max(n, m - s + 1), m + s - 1)) for (n, _, s), m in zip(sizes, layer.extent(extent))
            )
            layer = cls(layer.kernel_size, stride, layer.padding, asked)
        return layer, (Operand(shape), Operand(shape, "distinct", prod(layer.extent(extent))))

    def source(self) -> str:
        """The constructor call; ``output_size`` is said in calls."""
        return constructor(self, "output_size")

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """Values and indices and, if there is one, ``output_size``."""
        if self.output_size is None:
            return operands, ()
        return operands, (("output_size", Pack("list", tuple(map(Literal, self.output_size)))),)

    def extent(self, extent: Shape) -> Shape:
        """The output's size along each spatial dimension, for an input of ``extent``."""
        settings = (self.kernel_size, self.stride or self.kernel_size, self.padding)
        default = ((n - 1) * s - 2 * p + k for n, k, s, p in per_dimension(extent, *settings))
        return self.output_size or tuple(default)

    def value(self, x: Array, at: Array) -> Array:
        """``x`` and ``i`` (N, C, ...) to ``y`` (N, C, ...)."""
        y = np.zeros((*x.shape[:2], *self.extent(x.shape[2:])), x.dtype)
        np.put_along_axis(spread(y), spread(at), spread(x), -1)
        return y

    def pull(self, v: Array, x: Array, at: Array) -> Gradients:
        """``dx`` of ``x``'s shape, and None."""
        return np.take_along_axis(spread(v), spread(at), -1).reshape(x.shape), None

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """One axis is unpooled as the first of two, the second of which is taken away again."""
        return super().last_node(step) if self.dims > 1 else step.view(step.v[..., None])


@dataclass(frozen=True)
class MaxUnpool2d(MaxUnpool1d):
    """``nn.MaxUnpool2d``: `MaxUnpool1d` over the two dimensions of ``x`` (N, C, H, W)."""

    dims: ClassVar[int] = 2


@dataclass(frozen=True)
class MaxUnpool3d(MaxUnpool1d):
    """``nn.MaxUnpool3d``: `MaxUnpool1d` over the three dimensions of ``x`` (N, C, D, H, W)."""

    dims: ClassVar[int] = 3
