"""Layers that move values about without computing: the gradient takes the same way back."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.primitive import MOST, Array, Layer, Operand, Shape, SingleStep


class _Reshape(SingleStep):
    """``y`` is a contiguous ``x`` seen in another shape, and ``dx`` is ``v`` in ``x``'s."""

    complex_since = "1.8"
    views = True

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` in ``x``'s shape."""
        return v.reshape(x.shape)


@dataclass(frozen=True)
class Flatten(_Reshape):
    """``nn.Flatten``: the axes ``start_dim`` to ``end_dim``, both included, become one; the VJP restores the shape.

    Source: the documentation of ``torch.nn.Flatten``. That of ``torch.flatten`` says that the input itself may come
    back where nothing is flattened; so `fitting` flattens two axes at least.
    """

    rounded_once = True

    start_dim: int = 1
    end_dim: int = -1

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """At least two dimensions."""
        return len(shape) > 1 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Two or more neighbouring axes, counted from either end; the default where it flattens anything."""
        rank = len(shape)
        ranges = [
            (start + a, end + b)
            for start in range(rank)
            for end in range(start + 1, rank)
            for a, b in product((0, -rank), repeat=2)
        ]
        first = sorted(ranges, key=lambda ends: ends != (1, -1))
        return cls(*draw(st.sampled_from(first))), (Operand(shape),)

    def value(self, x: Array) -> Array:
        """``x`` with the axes from ``start_dim`` to ``end_dim`` made one."""
        start, end = self.start_dim % x.ndim, self.end_dim % x.ndim
        return x.reshape(*x.shape[:start], -1, *x.shape[end + 1 :])


@dataclass(frozen=True)
class Unflatten(_Reshape):
    """``nn.Unflatten``: the axis ``dim`` becomes axes of ``unflattened_size``; the VJP makes them one again.

    Source: the documentation of ``torch.nn.Unflatten``.
    """

    dim: int
    unflattened_size: tuple[int, ...]

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """At least one dimension, and room for one more."""
        return 0 < len(shape) < MOST and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Any axis, counted from either end, in two factors or, where there is room, three."""
        dim = draw(st.sampled_from([*range(len(shape)), *range(-len(shape), 0)]))
        outer = draw(st.sampled_from(divisors(shape[dim])))
        between = divisors(shape[dim] // outer) if len(shape) + 2 <= MOST else []
        inner = draw(st.sampled_from([(), *((d,) for d in between)]))
        rest = shape[dim] // outer // (inner[0] if inner else 1)
        return cls(dim, (outer, *inner, rest)), (Operand(shape),)

    def value(self, x: Array) -> Array:
        """``x`` with the axis ``dim`` in the shape ``unflattened_size``."""
        dim = self.dim % x.ndim
        return x.reshape(*x.shape[:dim], *self.unflattened_size, *x.shape[dim + 1 :])


def divisors(number: int) -> list[int]:
    """Those that divide it, the smallest first."""
    return [d for d in range(1, number + 1) if number % d == 0]
