"""Pooling by the largest: y is the maximum of each window, and its cotangent goes to where the maximum was."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st

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
from hookcheck.topology.primitive import Array, Arrays, Layer, Operand, Shape


def may_tie(shape: Shape) -> bool:
    """Whether two ``real`` numbers of one plane may be equal: 96 are all different, then they come anew (`values`)."""
    plane = prod(shape[2:])
    return prod(shape) > 96 and 96 % plane != 0


class MaximumPool(Pool):
    """``y[n, c, o] = max x[n, c, i]`` over the positions ``i`` of window ``o``; the first of equal ones is taken.

    With ``return_indices`` the result is ``(y, i)``, the index counted in the flattened input plane. With cotangent
    ``v``: ``dx[n, c, i] = Σ v[n, c, o]`` over the windows whose maximum is at ``i``.
    """

    @property
    @abstractmethod
    def indexed(self) -> bool:
        """Whether the indices are given too."""

    @abstractmethod
    def windows(self, extent: Shape) -> list[Array]:
        """For each spatial dimension, which positions each window holds."""

    def value(self, x: Array) -> Array | Arrays:
        """``x`` (N, C, ...) to ``y`` and, if asked for, the indices: (N, C, windows of each dimension)."""
        windows = self.windows(x.shape[2:])
        at = self._largest(x, windows)
        shape = output_shape(x, windows)
        y = np.take_along_axis(spread(x), at, -1).reshape(shape)
        return (y, at.reshape(shape)) if self.indexed else y

    def pull(self, v: Array, *others: Array) -> Array:
        """``dx`` of ``x``'s shape. Between ``v`` and ``x``, the cotangent of indices means nothing."""
        x = others[-1]
        hit = self._largest(x, self.windows(x.shape[2:]))[..., None] == np.arange(prod(x.shape[2:]))
        return np.einsum("nco,ncoi->nci", spread(v), hit).reshape(x.shape)

    def result(self, outputs: tuple[Any, ...]) -> Any:
        """``y``, or the tuple of ``y`` and the indices."""
        return outputs if self.indexed else outputs[0]

    @staticmethod
    def _largest(x: Array, windows: list[Array]) -> Array:
        """(N, C, all windows): the flat index of each window's maximum."""
        return np.where(joined(windows), spread(x)[..., None, :], -np.inf).argmax(-1)


@dataclass(frozen=True)
class MaxPool1d(Batched, Sliding, MaximumPool):
    """``nn.MaxPool1d``: ``x`` (N, C, L) to ``y`` (N, C, L'), as `MaximumPool` writes it, of sliding windows.

    Window ``o`` holds ``o·stride − padding + j·dilation`` for ``j < kernel_size``; the padding never is the maximum.
    Source: the documentation of ``torch.nn.MaxPool1d``.
    """

    dims: ClassVar[int] = 1

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    dilation: Size = 1
    return_indices: bool = False
    ceil_mode: bool = False
    unbatched: bool = False

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Windows each of which holds a position of the input; of one position where numbers may tie.

        Positions no further apart than the input is long never step over it.
        """
        kernel = drawn_kernel(draw, shape[2:], 1 if may_tie(shape) else 3)
        padding = drawn_padding(draw, kernel)
        dilation = tuple(
            draw(st.integers(1, 2)) if n > 1 and 2 * (k - 1) < n + 2 * p else 1
            for n, k, p in zip(shape[2:], kernel, padding)
        )
        layer = cls(
            settled(kernel),
            drawn_stride(draw, cls.dims),
            settled(padding),
            settled(dilation),
            draw(st.booleans()),
            draw(st.booleans()),
        )
        return layer, (Operand(shape),)

    @property
    def indexed(self) -> bool:
        """As ``return_indices`` says."""
        return self.return_indices

    def windows(self, extent: Shape) -> list[Array]:
        """Sliding windows."""
        settings = (self.kernel_size, self.stride or self.kernel_size, self.padding, self.dilation)
        return [
            members(n, starts(n, k, s, p, d, self.ceil_mode), d * (k - 1) + 1, d)
            for n, k, s, p, d in per_dimension(extent, *settings)
        ]


@dataclass(frozen=True)
class MaxPool2d(MaxPool1d):
    """``nn.MaxPool2d``: `MaxPool1d` over the two dimensions of ``x`` (N, C, H, W)."""

    rounded_once = True
    sample_since = "1.8"
    dims: ClassVar[int] = 2


@dataclass(frozen=True)
class MaxPool3d(MaxPool1d):
    """``nn.MaxPool3d``: `MaxPool1d` over the three dimensions of ``x`` (N, C, D, H, W)."""

    sample_since = "1.8"
    dims: ClassVar[int] = 3


@dataclass(frozen=True)
class AdaptiveMaxPool1d(Batched, MaximumPool):
    """``nn.AdaptiveMaxPool1d``: ``x`` (N, C, L) to ``y`` (N, C, output_size), as `MaximumPool` writes it.

    The windows are those of `adaptive`. Source: the documentation of ``torch.nn.AdaptiveMaxPool1d``.
    """

    dims: ClassVar[int] = 1

    output_size: Sizes
    return_indices: bool = False
    unbatched: bool = False

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Any number of windows; where numbers may tie, one for each position."""
        sizes = settled(shape[2:]) if may_tie(shape) else drawn_sizes(draw, shape[2:])
        return cls(sizes, draw(st.booleans())), (Operand(shape),)

    @property
    def indexed(self) -> bool:
        """As ``return_indices`` says."""
        return self.return_indices

    def windows(self, extent: Shape) -> list[Array]:
        """Adaptive windows."""
        return adaptive(extent, self.output_size)


@dataclass(frozen=True)
class AdaptiveMaxPool2d(AdaptiveMaxPool1d):
    """``nn.AdaptiveMaxPool2d``: `AdaptiveMaxPool1d` over the two dimensions of ``x`` (N, C, H, W)."""

    sample_since = "1.8"
    dims: ClassVar[int] = 2


@dataclass(frozen=True)
class AdaptiveMaxPool3d(AdaptiveMaxPool1d):
    """``nn.AdaptiveMaxPool3d``: `AdaptiveMaxPool1d` over the three dimensions of ``x`` (N, C, D, H, W)."""

    sample_since = "1.8"
    dims: ClassVar[int] = 3
