"""Layers that split, swap and join axes: a permutation of places forwards, its inverse on the way back."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.structure import divisors
from hookcheck.topology.primitive import Array, Layer, Operand, Shape, SingleStep


class _Shuffle(SingleStep):
    """``y = P x`` with a permutation ``P`` of places; ``dx = Pᵀ v``, the inverse permutation."""

    complex_since = "1.9"

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)


@dataclass(frozen=True)
class PixelShuffle(Batched, _Shuffle):
    """``nn.PixelShuffle``: (N, C r², H, W) to (N, C, H r, W r).

    ``y[n, c, h r + i, w r + j] = x[n, c r² + i r + j, h, w]`` with ``r`` the ``upscale_factor``.
    Source: the documentation of ``torch.nn.PixelShuffle``; Shi et al. 2016, equation 4.
    """

    sample_since = "1.8"
    upscale_factor: int
    unbatched: bool = False

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, C r², H, W)."""
        return len(shape) == 4 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A factor whose square divides the channels."""
        factors = [r for r in range(1, shape[1] + 1) if shape[1] % r**2 == 0]
        return cls(draw(st.sampled_from(factors))), (Operand(shape),)

    def value(self, x: Array) -> Array:
        """(N, C r², H, W) to (N, C, H r, W r)."""
        return _to_space(x, self.upscale_factor)

    def pull(self, v: Array, x: Array) -> Array:
        """(N, C, H r, W r) to (N, C r², H, W)."""
        return _to_depth(v, self.upscale_factor)

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """One Node since 1.12; before, the axes of the permutation put together (pytorch#50573)."""
        if step.release >= (1, 12):
            return (step.each,)
        (n, c, h, w), r = self.batched((step.v,), (0,))[0].shape, self.upscale_factor
        shape = (n, c, h // r, r, w // r, r)
        return step.view(step.v.reshape(shape[1:] if self.unbatched else shape), "otherwise")


@dataclass(frozen=True)
class PixelUnshuffle(Batched, _Shuffle):
    """``nn.PixelUnshuffle``: (N, C, H r, W r) to (N, C r², H, W), the inverse of ``PixelShuffle``.

    Source: the documentation of ``torch.nn.PixelUnshuffle``.
    """

    sample_since = "1.8"
    since = "1.8"
    downscale_factor: int
    unbatched: bool = False

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, C, H r, W r)."""
        return len(shape) == 4 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A factor that divides height and width."""
        factors = [r for r in divisors(shape[2]) if shape[3] % r == 0]
        return cls(draw(st.sampled_from(factors))), (Operand(shape),)

    def value(self, x: Array) -> Array:
        """(N, C, H r, W r) to (N, C r², H, W)."""
        return _to_depth(x, self.downscale_factor)

    def pull(self, v: Array, x: Array) -> Array:
        """(N, C r², H, W) to (N, C, H r, W r)."""
        return _to_space(v, self.downscale_factor)

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """One Node since 1.12; before, the axes of the permutation put together (pytorch#50573)."""
        if step.release >= (1, 12):
            return (step.each,)
        (n, c, h, w), r = self.batched((step.v,), (0,))[0].shape, self.downscale_factor
        shape = (n, c // r**2, r, r, h, w)
        return step.view(step.v.reshape(shape[1:] if self.unbatched else shape), "otherwise")


@dataclass(frozen=True)
class ChannelShuffle(_Shuffle):
    """``nn.ChannelShuffle``: (N, C, ...) to (N, C, ...), channel ``i (C / groups) + j`` to place ``j groups + i``.

    The inverse shuffles in ``C / groups`` groups. Source: the documentation of ``torch.nn.ChannelShuffle``; Zhang et
    al. 2018 (ShuffleNet), section 3.1.
    """

    since = "2.6"  # the class is in 1.7, but has no derivative in 2.4 yet (pytorch issue 67240)
    groups: int

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, ...), at least three dimensions."""
        return len(shape) > 2 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A number of groups that divides the channels."""
        return cls(draw(st.sampled_from(divisors(shape[1])))), (Operand(shape),)

    def value(self, x: Array) -> Array:
        """The channels as (groups, C / groups), transposed."""
        return _transposed(x, self.groups)

    def pull(self, v: Array, x: Array) -> Array:
        """The channels as (C / groups, groups), transposed."""
        return _transposed(v, v.shape[1] // self.groups)


def _to_space(x: Array, r: int) -> Array:
    n, c, h, w = x.shape
    return x.reshape(n, c // r**2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // r**2, h * r, w * r)


def _to_depth(x: Array, r: int) -> Array:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4).reshape(n, c * r**2, h // r, w // r)


def _transposed(x: Array, rows: int) -> Array:
    return x.reshape(len(x), rows, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)
