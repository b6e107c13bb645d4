"""Fractional max pooling, with the random samples given: windows at pseudo-random steps between two whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.max_pool import MaximumPool, may_tie
from hookcheck.topology.layers.pooling_windows import Size, drawn_kernel, members, per_dimension, settled
from hookcheck.topology.primitive import Array, Layer, Operand, Shape

Samples = tuple[tuple[tuple[float, ...], ...], ...]


@dataclass(frozen=True)
class FractionalMaxPool2d(Batched, MaximumPool):
    """``nn.FractionalMaxPool2d``: ``x`` (N, C, H, W) to ``y`` (N, C, *output_size), as `MaximumPool` writes it.

    Along a dimension of ``n`` positions the ``m`` windows of ``k`` start at ``⌊(o + u) α⌋ − ⌊u α⌋``, where ``α`` is
    ``(n − k) / (m − 1)``, the last of them at ``n − k``; ``u`` is the plane's sample for that dimension.
    ``_random_samples`` (N, C, 2) holds them last dimension first.
    Source: the documentation of ``torch.nn.FractionalMaxPool2d``; Graham, 'Fractional Max-Pooling' (arXiv:1412.6071),
    section 2, for the sequences; which sample belongs to which dimension was seen on torch 2.13.
    """

    sample_since = "1.8"
    dims: ClassVar[int] = 2
    order: ClassVar[tuple[int, ...]] = (1, 0)
    spare: ClassVar[int] = 0

    kernel_size: Size
    output_size: Size
    samples: Samples
    return_indices: bool = False
    unbatched: bool = False

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """Room for one window along each dimension, and for the positions to ``spare``."""
        return super().takes_batch(shape) and min(shape[2:]) > cls.spare

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Kernel and output that the input has room for; kernels of 1 where numbers may tie.

        Samples are odd multiples of 1/32, for which no ``(o + u) α`` is a whole number while ``n − k < 32``: rounding
        can't move a window.
        """
        room = tuple(n - cls.spare for n in shape[2:])
        kernel = drawn_kernel(draw, room, 1 if may_tie(shape) else 3)
        output = tuple(draw(st.integers(1, n - k + 1)) for n, k in zip(room, kernel))
        sample = st.integers(0, 15).map(lambda i: (2 * i + 1) / 32)
        of_plane = st.tuples(*[sample] * cls.dims)
        samples = draw(st.tuples(*[st.tuples(*[of_plane] * shape[1])] * shape[0]))
        return cls(settled(kernel), settled(output), samples, draw(st.booleans())), (Operand(shape),)

    def source(self) -> str:
        """The constructor call."""
        indices = ", return_indices=True" if self.return_indices else ""
        shown = f"{self.kernel_size}, output_size={self.output_size}{indices}"
        return f"nn.{type(self).__name__}({shown}, _random_samples=torch.tensor({self._listed()}))"

    @property
    def indexed(self) -> bool:
        """As ``return_indices`` says."""
        return self.return_indices

    def windows(self, extent: Shape) -> list[Array]:
        """Fractional windows of each plane: (N, C, windows, positions) for each dimension."""
        samples = np.array(self.samples)[..., self.order]
        sizes = per_dimension(extent, self.kernel_size, self.output_size)
        return [members(n, self._starts(n - k, m, samples[..., axis]), k) for axis, (n, k, m) in enumerate(sizes)]

    def _listed(self) -> list[list[list[float]]]:
        return [[list(plane) for plane in planes] for planes in self.samples]

    @staticmethod
    def _starts(last: int, count: int, u: Array) -> Array:
        """(N, C, count): where the windows of each plane start."""
        alpha = last / max(1, count - 1)
        first: Array = np.floor((np.arange(count) + u[..., None]) * alpha) - np.floor(u[..., None] * alpha)
        first[..., -1] = last
        return first


@dataclass(frozen=True)
class FractionalMaxPool3d(FractionalMaxPool2d):
    """``nn.FractionalMaxPool3d``: `FractionalMaxPool2d` over ``x`` (N, C, D, H, W), samples in the dimensions' order.

    It refuses a kernel and an output that together leave no position of the input over.
    """

    dims: ClassVar[int] = 3
    order: ClassVar[tuple[int, ...]] = (0, 1, 2)
    spare: ClassVar[int] = 1
