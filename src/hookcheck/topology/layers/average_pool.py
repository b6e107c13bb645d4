"""Pooling by the mean: each window's average is a linear map of its input, and the VJP is that map transposed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.pooling_windows import (
    Pool,
    Size,
    Sizes,
    Sliding,
    adaptive,
    drawn_kernel,
    drawn_padding,
    drawn_sizes,
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


class AveragePool(Pool):
    """``y[n, c, o] = Σ A[o, i] x[n, c, i]``; with cotangent ``v``: ``dx[n, c, i] = Σ A[o, i] v[n, c, o]``."""

    @abstractmethod
    def weights(self, extent: Shape) -> list[Array]:
        """The factors of ``A``: for each spatial dimension what a position counts for in a window, mostly 1/size."""

    def value(self, x: Array) -> Array:
        """``x`` (N, C, ...) to ``y`` (N, C, windows of each dimension)."""
        weights = self.weights(x.shape[2:])
        return (spread(x) @ joined(weights).T.astype(x.dtype)).reshape(output_shape(x, weights))

    def pull(self, v: Array, x: Array) -> Array:
        """``dx`` of ``x``'s shape."""
        return (spread(v) @ joined(self.weights(x.shape[2:])).astype(x.dtype)).reshape(x.shape)


@dataclass(frozen=True)
class AvgPool1d(Batched, Sliding, AveragePool):
    """``nn.AvgPool1d``: ``x`` (N, C, L) to ``y`` (N, C, L'), as `AveragePool` writes it, of sliding windows.

    The padding is zeros. A window's sum is divided by the number of its positions: those of the padding among them if
    ``count_include_pad``, those past the padding, where ``ceil_mode`` lets a window go, never.
    Source: the documentation of ``torch.nn.AvgPool1d``.
    """

    smooth = True
    overwritable = True

    dims: ClassVar[int] = 1

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    unbatched: bool = False

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Windows that the input covers."""
        return cls(*cls._settings(draw, shape)), (Operand(shape),)

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Size, Size | None, Size, bool, bool]:
        kernel = drawn_kernel(draw, shape[2:])
        stride, padding = drawn_stride(draw, cls.dims), settled(drawn_padding(draw, kernel))
        return settled(kernel), stride, padding, draw(st.booleans()), not draw(st.booleans())

    def sizes(self, extent: Shape) -> list[tuple[Array, Array]]:
        """For each spatial dimension: which positions each window holds, and by how many it is divided."""
        settings = (self.kernel_size, self.stride or self.kernel_size, self.padding)
        sizes = []
        for n, k, s, p in per_dimension(extent, *settings):
            start = starts(n, k, s, p, 1, self.ceil_mode)
            held = members(n, start, k)
            sizes.append((held, np.minimum(start + k, n + p) - start if self.count_include_pad else held.sum(-1)))
        return sizes

    def weights(self, extent: Shape) -> list[Array]:
        """1/size where a window holds a position."""
        return [held / size[:, None] for held, size in self.sizes(extent)]


@dataclass(frozen=True)
class AvgPool2d(AvgPool1d):
    """``nn.AvgPool2d``: `AvgPool1d` over the two dimensions of ``x`` (N, C, H, W).

    With ``divisor_override`` every sum is divided by that number. Source: the documentation of ``torch.nn.AvgPool2d``.
    """

    smooth = True
    overwritable = True
    rounded_once = True
    sample_since = "1.8"
    dims: ClassVar[int] = 2

    divisor_override: int | None = None

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Windows that the input covers, and any divisor."""
        settings = cls._settings(draw, shape)
        return cls(*settings, divisor_override=draw(st.none() | st.integers(1, 5))), (Operand(shape),)

    def weights(self, extent: Shape) -> list[Array]:
        """As for `AvgPool1d`, or with the one divisor, which the first dimension's factor carries."""
        if self.divisor_override is None:
            return super().weights(extent)
        first, *rest = (held for held, _ in self.sizes(extent))
        return [first / self.divisor_override, *rest]


@dataclass(frozen=True)
class AvgPool3d(AvgPool2d):
    """``nn.AvgPool3d``: `AvgPool2d` over the three dimensions of ``x`` (N, C, D, H, W)."""

    rounded_once = False
    sample_since = "1.8"
    dims: ClassVar[int] = 3


@dataclass(frozen=True)
class AdaptiveAvgPool1d(Batched, AveragePool):
    """``nn.AdaptiveAvgPool1d``: ``x`` (N, C, L) to ``y`` (N, C, output_size), as `AveragePool` writes it.

    The windows are those of `adaptive`. Source: the documentation of ``torch.nn.AdaptiveAvgPool1d``.
    """

    dims: ClassVar[int] = 1

    output_size: Sizes
    unbatched: bool = False

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Any number of windows."""
        return cls(drawn_sizes(draw, shape[2:])), (Operand(shape),)

    def weights(self, extent: Shape) -> list[Array]:
        """1/size where a window holds a position."""
        return [held / held.sum(-1, keepdims=True) for held in adaptive(extent, self.output_size)]


@dataclass(frozen=True)
class AdaptiveAvgPool2d(AdaptiveAvgPool1d):
    """``nn.AdaptiveAvgPool2d``: `AdaptiveAvgPool1d` over the two dimensions of ``x`` (N, C, H, W)."""

    sample_since = "1.8"
    dims: ClassVar[int] = 2

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """A mean, where there is one window; of channels-last images it is then laid out as they are, by a Node."""
        forms = super().last_node(step)
        one_window = {*step.v.shape[-self.dims :]} == {1}
        return forms if step.contiguous or not one_window else (*forms, *step.alone(step.v))


@dataclass(frozen=True)
class AdaptiveAvgPool3d(AdaptiveAvgPool2d):
    """``nn.AdaptiveAvgPool3d``: `AdaptiveAvgPool1d` over the three dimensions of ``x`` (N, C, D, H, W)."""

    sample_since = "1.8"
    dims: ClassVar[int] = 3
