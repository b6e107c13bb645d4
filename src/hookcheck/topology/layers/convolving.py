"""Which sums do convolutions and transposed convolutions share? Those between a wide tensor and a narrow one.

The *wide* side is the one that is padded and read through windows: a convolution's input, a transposed convolution's
output. The *narrow* side has one element a window. Along one axis, window ``i`` reads at kernel offset ``p`` the wide
element number ``i·stride + p·dilation − padding``, or, where that lies outside, the one that the padding mode names.
As a matrix of zeros and ones, ``R[(i, p), a] = 1`` if it reads ``a``, so that with one matrix an axis

    ``narrow[n, o, i, j] = Σ_{c, p, q} W[o, c, p, q] · Σ_{a, b} R[(i, p), a] · S[(j, q), b] · wide[n, c, a, b]``

and likewise for one and three axes. Both gradients, and the transposed convolution, are this sum turned round.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import numpy as np

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.axes import along, selection
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.primitive import Array, Shape, SingleStep

Pair = tuple[int, int]
Triple = tuple[int, int, int]

READ: dict[str, Callable[[Array, int], Array]] = {
    "zeros": lambda at, n: at,
    "reflect": lambda at, n: n - 1 - np.abs(n - 1 - np.abs(at)),
    "replicate": lambda at, n: np.clip(at, 0, n - 1),
    "circular": lambda at, n: at % n,
}
"""For each padding mode, which of ``n`` elements is read at a place that may lie outside; none, if that is outside."""

LETTERS = {1: ("ngcip", "gocp", "ngoi"), 2: ("ngcipjq", "gocpq", "ngoij"), 3: ("ngcipjqkr", "gocpqr", "ngoijk")}
"""For each number of axes, the subscripts of windows, weight and narrow tensor; ``g`` is the group."""


@lru_cache(maxsize=4096)
def readings(wide: int, narrow: int, kernel: int, stride: int, dilation: int, padding: int, mode: str) -> Array:
    """The matrix ``R`` (narrow · kernel, wide) of one axis."""
    at = np.arange(narrow)[:, None] * stride + np.arange(kernel) * dilation - padding
    return selection(READ[mode](at.ravel(), wide), wide)


class Convolving(SingleStep):
    """What all convolutions share: their settings, their parameters, and the sums. It is no layer itself."""

    axes: ClassVar[int]
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...] | str
    dilation: tuple[int, ...]
    groups: int
    bias: bool
    padding_mode: str

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, ...) with as many further axes as the kernel has."""
        return len(shape) == 2 + cls.axes and all(shape)

    @property
    def ends(self) -> tuple[int, int]:
        """The number of channels of the narrow side and of the wide side."""
        return self.out_channels, self.in_channels

    @property
    def margins(self) -> list[int]:
        """How many elements are added before each axis of the wide side."""
        if not isinstance(self.padding, str):
            return list(self.padding)
        return [d * (k - 1) // 2 if self.padding == "same" else 0 for d, k in zip(self.dilation, self.kernel_size)]

    def parameters(self) -> dict[str, Shape]:
        """``weight`` (narrow channels, wide channels / groups, kernel) and, if any, ``bias`` (out_channels,)."""
        narrow, wide = self.ends
        weight: dict[str, Shape] = {"weight": (narrow, wide // self.groups, *self.kernel_size)}
        return {**weight, "bias": (self.out_channels,)} if self.bias else weight

    def source(self) -> str:
        """The constructor call, settings at their default left out."""
        return constructor(self, "output_size")

    def narrowed(self, wide: Array, weight: Array, sides: Shape) -> Array:
        """The narrow tensor, its axes of length ``sides``."""
        windows, kernel, narrow = LETTERS[self.axes]
        y: Array = np.einsum(f"{windows},{kernel}->{narrow}", self._windows(wide, sides), self._in_groups(weight))
        return y.reshape(len(wide), -1, *sides)

    def widened(self, narrow: Array, weight: Array, sides: Shape) -> Array:
        """The adjoint of `narrowed` for a wide tensor with axes of length ``sides``."""
        windows, kernel, letters = LETTERS[self.axes]
        matrices = self._readings(sides, narrow.shape[2:])
        grouped = narrow.reshape(len(narrow), self.groups, -1, *narrow.shape[2:])
        spread = np.einsum(f"{letters},{kernel}->{windows}", grouped, self._in_groups(weight))
        return along(spread.reshape(len(narrow), -1, *map(len, matrices)), [matrix.T for matrix in matrices])

    def met(self, narrow: Array, wide: Array) -> Array:
        """The sum over all windows of the products of what meets there, of the weight's shape."""
        windows, kernel, letters = LETTERS[self.axes]
        grouped = narrow.reshape(len(narrow), self.groups, -1, *narrow.shape[2:])
        products: Array = np.einsum(f"{letters},{windows}->{kernel}", grouped, self._windows(wide, narrow.shape[2:]))
        return products.reshape(-1, *products.shape[2:])

    def gradients(self, weight: Array, v: Array) -> dict[str, Array]:
        """The gradients by name: ``weight`` as given, and the bias's from the cotangent ``v``."""
        summed = (0, *range(2, v.ndim))
        return {"weight": weight, "bias": v.sum(summed)} if self.bias else {"weight": weight}

    def shifted(self, y: Array, bias: Array | None) -> Array:
        """``y`` with the bias added, if there is one."""
        return y if bias is None else y + bias.reshape(-1, *(1,) * self.axes)

    def convolved(self, step: Step, whole: Form) -> tuple[Form, ...]:
        """What the last Node hands on: ``whole``, of a Node that has the gradients of input, weight and bias.

        Up to 1.10 one axis was made two, and the second taken away again, and groups were run one by one and put
        together (``_convolution`` in Convolution.cpp). Complex numbers are convolved as real ones, and the last Node
        adds the real part and i times the imaginary one.
        """
        if step.v.dtype.kind == "c":
            return ((step.inner(step.v.real), step.inner(step.v)),)
        if step.release >= (1, 11):
            return (whole,)
        if self.axes == 1:
            return step.view(step.v[:, :, None])
        return (tuple(map(step.inner, np.split(step.v, self.groups, 1))),) if self.groups > 1 else (whole,)

    def _readings(self, wide: Shape, narrow: Shape) -> list[Array]:
        settings = zip(wide, narrow, self.kernel_size, self.stride, self.dilation, self.margins)
        return [readings(*of_axis, self.padding_mode) for of_axis in settings]

    def _windows(self, wide: Array, sides: Shape) -> Array:
        """(N, groups, channels of a group, and for each axis windows and kernel offsets)."""
        read = along(wide, self._readings(wide.shape[2:], sides))
        return read.reshape(len(wide), self.groups, -1, *(n for pair in zip(sides, self.kernel_size) for n in pair))

    def _in_groups(self, weight: Array) -> Array:
        return weight.reshape(self.groups, -1, *weight.shape[1:])
