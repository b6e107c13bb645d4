"""Paddings: each place of the padded axis reads one place of the input, or none."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Union

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.axes import Separable, selection
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.primitive import Array, Layer, Operand, Shape

Padding = Union[int, tuple[int, ...]]
"""One number for every side, or a pair (before, after) for each axis, the last axis first."""


class _Pad(Batched, Separable):
    """``y[n, c, i] = x[n, c, reads(i)]`` with ``i`` counted from the input's first place, for each axis after (N, C).

    ``dx[n, c, k]`` is the sum of ``v[n, c, i]`` over all ``i`` with ``reads(i) = k``; a place that reads nothing has no
    part in it.
    """

    axes: ClassVar[int]
    sample_since = "1.10"  # pytorch pull request 62183
    complex_since = "1.9"  # the release whose list of functions with complex gradients has them
    padding: Padding

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, C, ...) with as many further axes as the class says."""
        return len(shape) == cls.axes + 2 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """One number for all sides, or one for each."""
        construct: Any = cls
        return construct(cls.drawn(draw, shape)), (Operand(shape),)

    @classmethod
    def drawn(cls, draw: st.DrawFn, shape: Shape) -> Padding:
        """A padding that every axis allows."""
        least, most = zip(*map(cls.bounds, reversed(shape[2:])))
        pairs = [st.integers(a, b) for a, b in zip(least, most) for _ in range(2)]
        padding: Padding = draw(st.one_of(st.integers(max(least), min(most)), st.tuples(*pairs)))
        return padding

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(before, after) of each axis, the first axis first."""
        if isinstance(self.padding, int):
            return ((self.padding, self.padding),) * self.axes
        return tuple(zip(self.padding[::2], self.padding[1::2]))[::-1]

    def matrices(self, sides: Shape) -> Sequence[Array]:
        """A one in each row, in the column that it reads; none in a row that reads nothing."""
        return [
            selection(self.reads(np.arange(-before, n + after), n), n)
            for n, (before, after) in zip(sides, self.pairs())
        ]

    @classmethod
    @abstractmethod
    def bounds(cls, side: int) -> tuple[int, int]:
        """The least and the most padding to draw for an axis of that length."""

    @abstractmethod
    def reads(self, places: Array, side: int) -> Array:
        """The places of the input that ``places``, counted from its first one, take their values from."""


class _ZeroPad(_Pad):
    sample_since = "1.8"

    @classmethod
    def bounds(cls, side: int) -> tuple[int, int]:
        """Negative padding crops; something is always left."""
        return -((side - 1) // 2), 2

    def reads(self, places: Array, side: int) -> Array:
        """Itself, which outside of the input is nothing."""
        return places


class _ConstantPad(_ZeroPad):
    value: float  # type: ignore[assignment]  # the constant, by torch's name

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Zeros first, then other constants."""
        construct: Any = cls
        return construct(cls.drawn(draw, shape), draw(st.integers(-24, 24)) / 8), (Operand(shape),)

    def mapped(self, x: Array) -> Array:
        """``x - value`` padded with zeros, plus ``value``."""
        return super().mapped(x - self.value) + self.value


class _ReflectionPad(_Pad):
    @classmethod
    def bounds(cls, side: int) -> tuple[int, int]:
        """Less than the axis, whose last place is not repeated."""
        return 0, min(2, side - 1)

    def reads(self, places: Array, side: int) -> Array:
        """Mirrored at the first and at the last place."""
        return side - 1 - np.abs(side - 1 - np.abs(places))


class _ReplicationPad(_Pad):
    @classmethod
    def bounds(cls, side: int) -> tuple[int, int]:
        """Any."""
        return 0, 2

    def reads(self, places: Array, side: int) -> Array:
        """The nearest place of the input."""
        return np.clip(places, 0, side - 1)


class _CircularPad(_Pad):
    since = "2.1"

    @classmethod
    def bounds(cls, side: int) -> tuple[int, int]:
        """At most once around."""
        return 0, min(2, side)

    def reads(self, places: Array, side: int) -> Array:
        """From the other end."""
        return places % side

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """The last write into a new tensor: behind the first padded axis, or ahead of it, or the input itself.

        Of what is written to, the cotangent where that stays; of what is written, the cotangent there
        (``_pad_circular`` in PadNd.cpp).
        """
        lead = step.v.ndim - self.axes
        sides = enumerate(zip(self.pairs(), step.v.shape[lead:]), lead)
        written = (
            (slice(None),) * axis + (slice(n - after, n) if after else slice(0, before),)
            for axis, ((before, after), n) in sides
            if before or after
        )
        places = next(written, None)
        if places is None:
            return ((None, step.inner(step.v)),)
        left = step.v.copy()
        left[places] = 0
        return ((step.inner(left), step.inner(step.v[places])),)


@dataclass(frozen=True)
class ZeroPad1d(_ZeroPad):
    """``nn.ZeroPad1d``: (N, C, W) to (N, C, W'), zeros around ``x``.

    Source: the documentation of ``torch.nn.ZeroPad1d``.
    """

    axes = 1
    since = "2.1"
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class ZeroPad2d(_ZeroPad):
    """``nn.ZeroPad2d``: (N, C, H, W) to (N, C, H', W'), zeros around ``x``.

    Source: the documentation of ``torch.nn.ZeroPad2d``.
    """

    axes = 2
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class ZeroPad3d(_ZeroPad):
    """``nn.ZeroPad3d``: (N, C, D, H, W) to (N, C, D', H', W'), zeros around ``x``.

    Source: the documentation of ``torch.nn.ZeroPad3d``.
    """

    axes = 3
    since = "2.1"
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class ConstantPad1d(_ConstantPad):
    """``nn.ConstantPad1d``: (N, C, W) to (N, C, W'), ``value`` around ``x``.

    Source: the documentation of ``torch.nn.ConstantPad1d``.
    """

    rounded_once = True
    axes = 1
    padding: Padding
    value: float
    unbatched: bool = False


@dataclass(frozen=True)
class ConstantPad2d(_ConstantPad):
    """``nn.ConstantPad2d``: (N, C, H, W) to (N, C, H', W'), ``value`` around ``x``.

    Source: the documentation of ``torch.nn.ConstantPad2d``.
    """

    axes = 2
    padding: Padding
    value: float
    unbatched: bool = False


@dataclass(frozen=True)
class ConstantPad3d(_ConstantPad):
    """``nn.ConstantPad3d``: (N, C, D, H, W) to (N, C, D', H', W'), ``value`` around ``x``.

    Source: the documentation of ``torch.nn.ConstantPad3d``.
    """

    axes = 3
    padding: Padding
    value: float
    unbatched: bool = False


@dataclass(frozen=True)
class ReflectionPad1d(_ReflectionPad):
    """``nn.ReflectionPad1d``: (N, C, W) to (N, C, W'), mirrored at the border.

    Source: the documentation of ``torch.nn.ReflectionPad1d``.
    """

    axes = 1
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class ReflectionPad2d(_ReflectionPad):
    """``nn.ReflectionPad2d``: (N, C, H, W) to (N, C, H', W'), mirrored at the border.

    Source: the documentation of ``torch.nn.ReflectionPad2d``.
    """

    axes = 2
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class ReflectionPad3d(_ReflectionPad):
    """``nn.ReflectionPad3d``: (N, C, D, H, W) to (N, C, D', H', W'), mirrored at the border.

    Source: the documentation of ``torch.nn.ReflectionPad3d``.
    """

    axes = 3
    since = "1.10"
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class ReplicationPad1d(_ReplicationPad):
    """``nn.ReplicationPad1d``: (N, C, W) to (N, C, W'), the border repeated.

    Source: the documentation of ``torch.nn.ReplicationPad1d``.
    """

    axes = 1
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class ReplicationPad2d(_ReplicationPad):
    """``nn.ReplicationPad2d``: (N, C, H, W) to (N, C, H', W'), the border repeated.

    Source: the documentation of ``torch.nn.ReplicationPad2d``.
    """

    axes = 2
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class ReplicationPad3d(_ReplicationPad):
    """``nn.ReplicationPad3d``: (N, C, D, H, W) to (N, C, D', H', W'), the border repeated.

    Source: the documentation of ``torch.nn.ReplicationPad3d``.
    """

    axes = 3
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class CircularPad1d(_CircularPad):
    """``nn.CircularPad1d``: (N, C, W) to (N, C, W'), continued from the other end.

    Source: the documentation of ``torch.nn.CircularPad1d``.
    """

    axes = 1
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class CircularPad2d(_CircularPad):
    """``nn.CircularPad2d``: (N, C, H, W) to (N, C, H', W'), continued from the other end.

    Source: the documentation of ``torch.nn.CircularPad2d``.
    """

    axes = 2
    padding: Padding
    unbatched: bool = False


@dataclass(frozen=True)
class CircularPad3d(_CircularPad):
    """``nn.CircularPad3d``: (N, C, D, H, W) to (N, C, D', H', W'), continued from the other end.

    Source: the documentation of ``torch.nn.CircularPad3d``.
    """

    axes = 3
    padding: Padding
    unbatched: bool = False
