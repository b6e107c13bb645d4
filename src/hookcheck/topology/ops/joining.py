"""Which operations put tensors together, or take one apart into several? Each VJP is the other way about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, NodeGradient, Release, Step
from hookcheck.topology.ops.rule import Ranked, Rule, Several, like, one
from hookcheck.topology.primitive import MOST, Array, Arrays, Gradients, Op, Operand, Shape


@dataclass(frozen=True)
class Cat(Ranked):
    """``torch.cat([a, b, ...], dim)``: the gradients are the pieces of the cotangent."""

    dim: int

    complex_since = "1.8"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On one or two more tensors that differ in length along ``dim`` alone."""
        dim = one(draw, len(shape))
        ahead, behind = shape[: dim % len(shape)], shape[dim % len(shape) + 1 :]
        lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
        return cls(dim), (Operand(shape), *(Operand((*ahead, n, *behind)) for n in lengths))

    def source(self, *arguments: str) -> str:
        """``torch.cat([a, b], 1)``."""
        return f"torch.cat([{', '.join(arguments)}], {self.dim})"

    def value(self, *inputs: Array) -> Array:
        """All of them, one after the other."""
        return np.concatenate(inputs, self.dim)

    def pull(self, v: Array, *inputs: Array) -> Gradients:
        """The pieces of ``v``."""
        pieces = _pieces(v, [x.shape[self.dim] for x in inputs], self.dim)
        return tuple(like(piece, x) for piece, x in zip(pieces, inputs))

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Of all that is put together, if any of it wants a gradient."""
        return (tuple(NodeGradient(gradient, step.floating) for gradient in step.gradients),)


@dataclass(frozen=True)
class Stack(Rule):
    """``torch.stack([a, b, ...], dim)``: the gradients are the slices of the cotangent along the new dimension."""

    dim: int

    complex_since = "1.8"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape that has room for one dimension more."""
        return len(shape) < MOST

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On two or three tensors of one shape."""
        return cls(one(draw, len(shape) + 1)), (Operand(shape),) * draw(st.integers(2, 3))

    def source(self, *arguments: str) -> str:
        """``torch.stack([a, b], 1)``."""
        return f"torch.stack([{', '.join(arguments)}], {self.dim})"

    def value(self, *inputs: Array) -> Array:
        """All of them, one over the other."""
        return np.stack(inputs, self.dim)

    def pull(self, v: Array, *inputs: Array) -> Gradients:
        """The slices of ``v``."""
        return tuple(like(piece, x) for piece, x in zip(np.moveaxis(v, self.dim, 0), inputs))

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Of all that is put together, if any of it wants a gradient."""
        return (tuple(NodeGradient(gradient, step.floating) for gradient in step.gradients),)


class Apart(Several):
    """An operation that takes a tensor apart, by one Node for all of its views."""

    def width(self, outputs: int, release: Release) -> int:
        """One for each view."""
        return outputs


@dataclass(frozen=True)
class Split(Apart):
    """``x.split([...], dim)``: several views; the gradient is their cotangents, one after the other."""

    sizes: tuple[int, ...]
    dim: int

    views = True
    complex_since = "1.8"
    _text = "{0}.split([{sizes}], {dim})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        dim = one(draw, len(shape))
        cuts = sorted(draw(st.lists(st.integers(0, shape[dim]), min_size=1, max_size=2)))
        return tuple(int(n) for n in np.diff([0, *cuts, shape[dim]])), dim

    def value(self, x: Array) -> Arrays:
        """The pieces."""
        return _pieces(x, self.sizes, self.dim)

    def pull(self, *arrays: Array) -> Array:
        """The cotangents, one after the other."""
        return np.concatenate(arrays[:-1], self.dim)


@dataclass(frozen=True)
class Chunk(Apart):
    """``x.chunk(count, dim)``: at most ``count`` views of ``⌈n / count⌉`` each, the last one of what is left.

    The gradient is their cotangents, one after the other. Source: the documentation of ``torch.chunk``.
    """

    count: int
    dim: int

    views = True
    complex_since = "1.8"
    _text = "{0}.chunk({count}, {dim})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return draw(st.integers(2, 3)), one(draw, len(shape))

    def value(self, x: Array) -> Arrays:
        """The pieces."""
        length = x.shape[self.dim]
        size = -(-length // self.count)
        return _pieces(x, [min(size, length - start) for start in range(0, length, size)], self.dim)

    def pull(self, *arrays: Array) -> Array:
        """The cotangents, one after the other."""
        return np.concatenate(arrays[:-1], self.dim)


@dataclass(frozen=True)
class Unbind(Apart):
    """``x.unbind(dim)``: a view for each index of the dimension; the gradient stacks their cotangents."""

    dim: int

    views = True
    complex_since = "1.8"
    _text = "{0}.unbind({dim})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (one(draw, len(shape)),)

    def value(self, x: Array) -> Arrays:
        """The slices."""
        return tuple(np.moveaxis(x, self.dim, 0))

    def pull(self, *arrays: Array) -> Array:
        """The cotangents, stacked."""
        return np.stack(arrays[:-1], self.dim)


def _pieces(x: Array, sizes: Any, dim: int) -> Arrays:
    return tuple(np.split(x, np.cumsum(sizes)[:-1], dim))
