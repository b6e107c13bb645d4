"""Which inputs does each window of a pooling layer hold? One boolean matrix (windows, positions) a spatial dimension.

Sliding, adaptive and fractional windows differ only in where they start and how far they reach. The Kronecker product
over the dimensions says what a window holds among the flattened positions, in row-major order, so that one formula does
for one, two and three dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import ClassVar, Optional, Union

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.primitive import Array, Shape, SingleStep

Size = Union[int, tuple[int, ...]]
"""A setting for each spatial dimension; a plain number stands for all of them."""

Sizes = Union[int, tuple[Optional[int], ...]]
"""What an adaptive layer gives along each spatial dimension: None for as many as come in."""


def per_dimension(extent: Shape, *settings: Size) -> Iterator[tuple[int, ...]]:
    """For each spatial dimension, how many positions it has and its settings."""
    return zip(extent, *(size if isinstance(size, tuple) else (size,) * len(extent) for size in settings))


def settled(sizes: Shape) -> Size:
    """The plainest way to write the settings of the spatial dimensions: one number if all are equal."""
    return sizes[0] if len(set(sizes)) == 1 else sizes


def starts(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> Array:
    """Where sliding windows start along a dimension of ``n`` positions; below 0 it is in the padding.

    There are ``⌊(n + 2·padding − dilation·(kernel − 1) − 1) / stride⌋ + 1``, with ``ceil_mode`` the quotient rounded
    up, except for a last window that would start in the padding on the right (documentation of ``nn.AvgPool2d``).
    """
    span = n + 2 * padding - dilation * (kernel - 1) - 1
    count = (span + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= n + padding:
        count -= 1
    return np.arange(count) * stride - padding


def members(n: int, start: Array, reach: Array | int, step: int = 1) -> Array:
    """(..., windows, n): whether a window holds a position, which is every ``step``-th from ``start`` in its reach."""
    offset = np.arange(n) - start[..., None]
    return (offset >= 0) & (offset < np.asarray(reach)[..., None]) & (offset % step == 0)


def adaptive(extent: Shape, sizes: Sizes) -> list[Array]:
    """For each spatial dimension, which of ``n`` positions each of ``m`` windows holds.

    Window ``o`` goes from ``⌊o·n / m⌋`` up to, and without, ``⌈(o + 1)·n / m⌉``.
    """
    asked = sizes if isinstance(sizes, tuple) else (sizes,) * len(extent)
    counts = [(n, np.arange(m or n), m or n) for n, m in zip(extent, asked)]
    return [members(n, o * n // m, -(-(o + 1) * n // m) - o * n // m) for n, o, m in counts]


def joined(matrices: Iterable[Array]) -> Array:
    """The Kronecker product of the dimensions' matrices, over their last two axes: (..., all windows, all positions).

    For boolean matrices the product is that all of them hold.
    """
    return reduce(_kronecker, matrices)


def _kronecker(a: Array, b: Array) -> Array:
    product: Array = a[..., :, None, :, None] * b[..., None, :, None, :]
    return product.reshape(*a.shape[:-2], a.shape[-2] * b.shape[-2], a.shape[-1] * b.shape[-1])


def spread(x: Array) -> Array:
    """(N, C, ...) with its positions flattened: (N, C, positions)."""
    return x.reshape(*x.shape[:2], -1)


def output_shape(x: Array, matrices: Sequence[Array]) -> Shape:
    """(N, C, windows of each dimension)."""
    return (*x.shape[:2], *(matrix.shape[-2] for matrix in matrices))


def drawn_kernel(draw: st.DrawFn, extent: Shape, longest: int = 3) -> Shape:
    """Kernels that the input covers without its padding (`torch.nn.AvgPool3d` refuses others)."""
    return tuple(draw(st.integers(1, min(longest, n))) for n in extent)


def drawn_padding(draw: st.DrawFn, kernel: Shape) -> Shape:
    """Paddings of at most half the kernel, as torch demands."""
    return tuple(draw(st.integers(0, k // 2)) for k in kernel)


def drawn_stride(draw: st.DrawFn, dims: int) -> Size | None:
    """None, which stands for the kernel size, or strides from 1 to 3."""
    return draw(st.none() | st.tuples(*[st.integers(1, 3)] * dims).map(settled))


def drawn_sizes(draw: st.DrawFn, extent: Shape) -> Sizes:
    """From one window along a dimension to one more than it has positions; or None, if there are two or more."""
    counts = [st.integers(1, n + 1) for n in extent]
    if len(extent) == 1:
        return draw(counts[0])
    sizes: tuple[int | None, ...] = draw(st.tuples(*(count | st.none() for count in counts)))
    return sizes[0] if sizes[0] is not None and len(set(sizes)) == 1 else sizes


class Pool(SingleStep):
    """What pooling layers share: a first input (N, C, and ``dims`` spatial dimensions), never empty."""

    dims: ClassVar[int]

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, L), (N, C, H, W) or (N, C, D, H, W)."""
        return len(shape) == 2 + cls.dims and all(shape)

    def source(self) -> str:
        """The constructor call, settings at their default left out."""
        return constructor(self)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """One axis is pooled as the second of two, the first of which is taken away again."""
        return super().last_node(step) if self.dims > 1 else step.view(np.expand_dims(step.v, -2))


class Sliding(Pool):
    """Pooling whose windows are equally long and equally far apart."""

    kernel_size: Size
    stride: Size | None
    ceil_mode: bool

    @property
    def since(self) -> str:
        """In 1.7 ``ceil_mode`` lets a last window start past the input, where strides are longer than the kernel:
        LY-03."""
        settings = per_dimension((0,) * self.dims, self.kernel_size, self.stride or self.kernel_size)
        return "1.8" if self.ceil_mode and any(s > k for _, k, s in settings) else "1.7"
