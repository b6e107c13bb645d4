"""Convolutions, as sums over kernel offsets of strided slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.model import Array, Layer, Operand, Shape

Pair = tuple[int, int]


@dataclass(frozen=True)
class Conv2d(Layer):
    """``nn.Conv2d``: ``x`` (N, in_channels, H, W) to ``y`` (N, out_channels, H', W'), zero padding.

    ``y[n, o, i, j] = b[o] + Σ_{c, p, q} W[o, c, p, q] · x̃[n, c, i·s + p·d, j·s + q·d]`` with ``x̃`` the padded input and
    ``c`` over the channels of ``o``'s group. With cotangent ``v`` the transposed sums: ``dx̃`` adds ``W · v`` where the
    forward read, ``dW[o, c, p, q] = Σ v · x̃``, ``db = Σ v``. Source: the documentation of ``torch.nn.Conv2d``.
    """

    in_channels: int
    out_channels: int
    kernel_size: Pair
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    bias: bool = True

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, H, W)."""
        return len(shape) == 4 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A kernel that the padded input covers."""
        channels = shape[1]
        groups = draw(st.sampled_from([g for g in range(1, channels + 1) if channels % g == 0]))
        padding = draw(st.tuples(st.integers(0, 1), st.integers(0, 1)))
        room = [n + 2 * p for n, p in zip(shape[2:], padding)]
        h, w = (draw(st.integers(1, min(3, n))) for n in room)
        dilation = tuple(draw(st.integers(1, 2)) if 2 * (k - 1) < n else 1 for k, n in zip((h, w), room))
        layer = cls(
            channels,
            groups * draw(st.integers(1, 2)),
            (h, w),
            draw(st.tuples(st.integers(1, 2), st.integers(1, 2))),
            padding,
            (dilation[0], dilation[1]),
            groups,
            draw(st.booleans()),
        )
        return layer, (Operand(shape),)

    def parameters(self) -> dict[str, Shape]:
        """``weight`` (out_channels, in_channels / groups, kH, kW) and, if there is one, ``bias`` (out_channels,)."""
        weight: dict[str, Shape] = {"weight": (self.out_channels, self.in_channels // self.groups, *self.kernel_size)}
        return {**weight, "bias": (self.out_channels,)} if self.bias else weight

    def source(self) -> str:
        """The constructor call, settings at their default left out."""
        settings = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, "bias": True}
        shown = "".join(f", {k}={getattr(self, k)}" for k, default in settings.items() if getattr(self, k) != default)
        return f"nn.Conv2d({self.in_channels}, {self.out_channels}, {self.kernel_size}{shown})"

    def extent(self, height: int, width: int) -> Pair:
        """Height and width of the output for an input of the given height and width, in pixels."""
        h, w = (
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, p, d, k, s in zip((height, width), self.padding, self.dilation, self.kernel_size, self.stride)
        )
        return h, w

    def forward(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> tuple[Array, ...]:
        """``x`` (N, in_channels, H, W) to ``y`` (N, out_channels, H', W')."""
        padded, weight = self._padded(inputs[0]), self._grouped(parameters["weight"])
        h, w = self.extent(*inputs[0].shape[2:])
        y: Array = np.zeros((len(padded), self.groups, self.out_channels // self.groups, h, w))
        for p, q, window in self._windows(h, w):
            y += np.einsum("ngchw,goc->ngohw", padded[window], weight[..., p, q])
        y = y.reshape(len(padded), self.out_channels, h, w)
        return (y + parameters["bias"][:, None, None] if self.bias else y,)

    def vjp(
        self, inputs: tuple[Array, ...], parameters: dict[str, Array], cotangents: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], dict[str, Array]]:
        """``dx`` of ``x``'s shape; ``dW`` and ``db`` of the parameters' shapes."""
        (x,), (v,) = inputs, cotangents
        padded, weight = self._padded(x), self._grouped(parameters["weight"])
        h, w = v.shape[2:]
        grouped = v.reshape(len(v), self.groups, -1, h, w)
        d_padded, d_weight = np.zeros_like(padded), np.zeros_like(weight)
        for p, q, window in self._windows(h, w):
            d_padded[window] += np.einsum("ngohw,goc->ngchw", grouped, weight[..., p, q])
            d_weight[..., p, q] = np.einsum("ngohw,ngchw->goc", grouped, padded[window])
        (top, left), (height, width) = self.padding, x.shape[2:]
        dx = d_padded[..., top : top + height, left : left + width].reshape(x.shape)
        gradients = {"weight": d_weight.reshape(parameters["weight"].shape)}
        if self.bias:
            gradients["bias"] = v.sum((0, 2, 3))
        return (dx,), gradients

    def _padded(self, x: Array) -> Array:
        (top, left), (n, c, h, w) = self.padding, x.shape
        padded = np.zeros((n, c, h + 2 * top, w + 2 * left))
        padded[:, :, top : top + h, left : left + w] = x
        return padded.reshape(n, self.groups, c // self.groups, h + 2 * top, w + 2 * left)

    def _grouped(self, weight: Array) -> Array:
        return weight.reshape(self.groups, self.out_channels // self.groups, *weight.shape[1:])

    def _windows(self, h: int, w: int) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
        """For each kernel offset, the slice of the padded input that meets it: (N, groups, channels, h, w)."""
        (sh, sw), (dh, dw) = self.stride, self.dilation
        for p, q in product(*map(range, self.kernel_size)):
            rows, columns = slice(p * dh, p * dh + h * sh, sh), slice(q * dw, q * dw + w * sw, sw)
            yield p, q, (..., rows, columns)
