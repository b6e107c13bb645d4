"""Sliding blocks: an image cut into columns (Unfold), columns added up to one (Fold), each the other's transpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.layers.axes import along, selection
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.structure import divisors
from hookcheck.topology.primitive import Array, Layer, Operand, Shape, SingleStep

Pair = Union[int, tuple[int, ...]]
"""One number for both axes, or one for each."""


class _Blocks(SingleStep):
    """``cols[n, (c, p, q), (i, j)] = image[n, c, i s + p d - pad, j s' + q d' - pad']``, 0 outside of the image."""

    complex_since = "1.11"
    kernel_size: Pair
    dilation: Pair
    padding: Pair
    stride: Pair

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)

    def counts(self, sides: Sequence[int]) -> tuple[int, int]:
        """The number of blocks along height and width."""
        settings = zip(sides, *map(pair, (self.kernel_size, self.dilation, self.padding, self.stride)))
        h, w = ((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in settings)
        return h, w

    def matrices(self, sides: Sequence[int]) -> list[Array]:
        """For height and for width (kernel · blocks, side): which place each offset of each block reads."""
        settings = zip(
            sides, self.counts(sides), *map(pair, (self.kernel_size, self.dilation, self.padding, self.stride))
        )
        return [
            selection((np.arange(k)[:, None] * d + np.arange(blocks) * s - p).reshape(-1), n)
            for n, blocks, k, d, p, s in settings
        ]

    def columns(self, image: Array) -> Array:
        """(N, C, H, W) to (N, C kH kW, L)."""
        n, c, *sides = image.shape
        (kh, kw), (h, w) = pair(self.kernel_size), self.counts(sides)
        blocks = along(image, self.matrices(sides)).reshape(n, c, kh, h, kw, w)
        return blocks.transpose(0, 1, 2, 4, 3, 5).reshape(n, c * kh * kw, h * w)

    def image(self, columns: Array, sides: Sequence[int]) -> Array:
        """(N, C kH kW, L) to (N, C, H, W), the transpose of `columns`: each place adds up what was read from it."""
        (kh, kw), (h, w) = pair(self.kernel_size), self.counts(sides)
        blocks = columns.reshape(len(columns), -1, kh, kw, h, w).transpose(0, 1, 2, 4, 3, 5)
        joined = blocks.reshape(*blocks.shape[:2], kh * h, kw * w)
        return along(joined, [matrix.T for matrix in self.matrices(sides)])


@dataclass(frozen=True)
class Unfold(_Blocks):
    """``nn.Unfold``: ``x`` (N, C, H, W) to (N, C kH kW, L), each column one of the ``L`` blocks; ``dx`` folds ``v``.

    Source: the documentation of ``torch.nn.Unfold``.
    """

    kernel_size: Pair
    dilation: Pair = 1
    padding: Pair = 0
    stride: Pair = 1

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, H, W)."""
        return len(shape) == 4 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Blocks that the padded image covers; one number for both axes, or one for each."""
        axes = [shape[2:]] if draw(st.booleans()) else [(n,) for n in shape[2:]]
        drawn = []
        for sides in axes:
            padding = draw(st.integers(0, 1))
            room = min(sides) + 2 * padding
            kernel = draw(st.integers(1, min(3, room)))
            dilation = draw(st.integers(1, 2 if 2 * (kernel - 1) < room else 1))
            drawn.append((kernel, dilation, padding, draw(st.integers(1, 2))))
        return cls(*(numbers[0] if len(axes) == 1 else numbers for numbers in zip(*drawn))), (Operand(shape),)

    def value(self, x: Array) -> Array:
        """``x`` (N, C, H, W) to (N, C kH kW, L)."""
        return self.columns(x)

    def pull(self, v: Array, x: Array) -> Array:
        """``dx`` (N, C, H, W)."""
        return self.image(v, x.shape[2:])


@dataclass(frozen=True)
class Fold(_Blocks):
    """``nn.Fold``: ``x`` (N, C kH kW, L) to (N, C, H, W), overlapping blocks added up; ``dx`` unfolds ``v``.

    Source: the documentation of ``torch.nn.Fold``.
    """

    output_size: Pair
    kernel_size: Pair
    dilation: Pair = 1
    padding: Pair = 0
    stride: Pair = 1

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C kH kW, L)."""
        return len(shape) == 3 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """An image with room for ``L`` blocks of a kernel whose size divides the rows."""
        _, rows, length = shape
        height = draw(st.sampled_from(divisors(length)))
        kernel = draw(st.sampled_from(divisors(rows)))
        kernels = kernel, draw(st.sampled_from(divisors(rows // kernel)))
        drawn = []
        for blocks, k in zip((height, length // height), kernels):
            stride, dilation = draw(st.integers(1, 2)), draw(st.integers(1, 2))
            least = (blocks - 1) * stride + dilation * (k - 1) + 1
            padding = draw(st.integers(0, 1 if least > 2 else 0))
            size = least - 2 * padding + draw(st.integers(0, stride - 1))
            drawn.append((size, k, dilation, padding, stride))
        return cls(*(a if a == b else (a, b) for a, b in zip(*drawn))), (Operand(shape),)

    def value(self, x: Array) -> Array:
        """``x`` (N, C kH kW, L) to (N, C, H, W)."""
        return self.image(x, pair(self.output_size))

    def pull(self, v: Array, x: Array) -> Array:
        """``dx`` (N, C kH kW, L)."""
        return self.columns(v)


def pair(setting: Pair) -> tuple[int, ...]:
    """A setting for height and width."""
    return (setting, setting) if isinstance(setting, int) else setting
