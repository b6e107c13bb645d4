"""Which operations show the memory of a tensor in another shape? The gradient takes the same way back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Union

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.ops.rule import Filled, Ranked, Rule, one, unbroadcast
from hookcheck.topology.primitive import MOST, Array, Shape


class _Shaped(Rule):
    """A view of the same elements in the same order: the VJP restores the shape."""

    views = True
    complex_since = "1.8"

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` in ``x``'s shape."""
        return v.reshape(x.shape)


@dataclass(frozen=True)
class View(_Shaped):
    """``x.view(...)`` of a contiguous ``x``; the VJP restores the shape."""

    shape: tuple[int, ...]

    _text = "{0}.view({shape})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        count = prod(shape)
        wider = [(1, *shape), (*shape, 1)] if len(shape) < MOST else []
        merged = [(shape[0] * shape[1], *shape[2:])] if len(shape) > 1 else []
        inferred = [(-1, shape[-1])] if len(shape) > 1 and count else []
        return (draw(st.sampled_from([(count,), *merged, *wider, *inferred, *([shape[::-1]] if shape else [])])),)

    def value(self, x: Array) -> Array:
        """``x`` in that shape."""
        return x.reshape(self.shape)


@dataclass(frozen=True)
class Reshape(View):
    """``x.reshape(...)``: a view of a contiguous ``x``, a copy where none is possible; the VJP restores the shape."""

    _text = "{0}.reshape({shape})"


@dataclass(frozen=True)
class Squeeze(_Shaped):
    """``x.squeeze(dim)``: without the dimension if its length is 1, else as it is; the VJP restores the shape."""

    dim: int

    _text = "{0}.squeeze({dim})"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with a dimension."""
        return len(shape) > 0

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (draw(st.sampled_from(sorted(range(len(shape)), key=lambda dim: shape[dim] != 1))),)

    def value(self, x: Array) -> Array:
        """``x`` without the dimension, if it can go."""
        return np.squeeze(x, self.dim) if x.shape[self.dim] == 1 else x


@dataclass(frozen=True)
class Unsqueeze(_Shaped):
    """``x.unsqueeze(dim)``: with a dimension of length 1 more; the VJP restores the shape."""

    dim: int

    _text = "{0}.unsqueeze({dim})"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape that has room for one dimension more."""
        return len(shape) < MOST

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (one(draw, len(shape) + 1),)

    def value(self, x: Array) -> Array:
        """``x`` with the dimension."""
        return np.expand_dims(x, self.dim)


@dataclass(frozen=True)
class Detach(_Shaped):
    """``x.detach()``: the identity, and its VJP is the cotangent; but autograd does not lead to ``x``."""

    _text = "{0}.detach()"

    def reaches(self, given: tuple[bool, ...]) -> tuple[bool, ...]:
        """Not to the input, whatever has a gradient."""
        return (False,)

    def value(self, x: Array) -> Array:
        """``x``."""
        return x


@dataclass(frozen=True)
class Permute(Ranked):
    """``x.permute(...)``: output dimension ``i`` is input dimension ``dims[i]``; the VJP is the inverse permutation."""

    dims: tuple[int, ...]

    views = True
    complex_since = "1.8"
    _text = "{0}.permute({dims})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (tuple(draw(st.permutations(range(len(shape))))),)

    def value(self, x: Array) -> Array:
        """``x``, its dimensions in that order."""
        return x.transpose(self.dims)

    def pull(self, v: Array, x: Array) -> Array:
        """``v``, its dimensions put back."""
        return v.transpose(np.argsort(self.dims))


@dataclass(frozen=True)
class Transpose(Ranked):
    """``x.transpose(a, b)``: two dimensions exchanged; the VJP exchanges them back."""

    a: int
    b: int

    views = True
    complex_since = "1.8"
    _text = "{0}.transpose({a}, {b})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return one(draw, len(shape)), one(draw, len(shape))

    def value(self, x: Array) -> Array:
        """``x``, two of its dimensions exchanged."""
        return x.swapaxes(self.a, self.b)

    def pull(self, v: Array, x: Array) -> Array:
        """``v``, the two exchanged back."""
        return v.swapaxes(self.a, self.b)


@dataclass(frozen=True)
class Expand(Rule):
    """``x.expand(...)``: sides of 1 and new leading ones repeated; the VJP sums over the repetitions."""

    shape: tuple[int, ...]

    views = True
    complex_since = "1.8"
    _text = "{0}.expand({shape})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        sides = draw(st.tuples(*(st.integers(1, 3) if n == 1 else st.just(n) for n in shape)))
        ahead = () if len(shape) == MOST else draw(st.sampled_from(((2,), (1,), ()) if shape else ((2,), (1,))))
        return ((*ahead, *sides),)

    def value(self, x: Array) -> Array:
        """``x``, repeated."""
        return np.broadcast_to(x, self.shape)

    def pull(self, v: Array, x: Array) -> Array:
        """``v``, summed over the repetitions."""
        return unbroadcast(v, x)


class _Part(Filled):
    """A view of some of the elements: the VJP puts the cotangent in their places, and 0 elsewhere."""

    views = True
    complex_since = "1.8"

    @abstractmethod
    def _key(self, rank: int) -> tuple[Any, ...]:
        """The NumPy index that reads the elements."""

    def value(self, x: Array) -> Array:
        """The elements."""
        return x[self._key(x.ndim)]

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` in their places, 0 elsewhere."""
        gradient = np.zeros_like(x)
        gradient[self._key(x.ndim)] = v
        return gradient


def _along(dim: int, rank: int, item: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * (dim % rank), item)


@dataclass(frozen=True)
class Narrow(_Part):
    """``x.narrow(dim, start, length)``: that part of the dimension; the VJP puts the cotangent in its place."""

    dim: int
    start: int
    length: int

    _text = "{0}.narrow({dim}, {start}, {length})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        dim = one(draw, len(shape))
        start = draw(st.integers(0, shape[dim] - 1))
        return dim, start, draw(st.integers(1, shape[dim] - start))

    def _key(self, rank: int) -> tuple[Any, ...]:
        return _along(self.dim, rank, slice(self.start, self.start + self.length))


@dataclass(frozen=True)
class Select(_Part):
    """``x.select(dim, index)``: the slice there, without the dimension; the VJP puts the cotangent in its place."""

    dim: int
    index: int

    _text = "{0}.select({dim}, {index})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        dim = one(draw, len(shape))
        return dim, one(draw, shape[dim])

    def _key(self, rank: int) -> tuple[Any, ...]:
        return _along(self.dim, rank, self.index)


Item = Union[int, tuple[Union[int, None], ...]]


@dataclass(frozen=True)
class Index(_Part):
    """``x[i, start:stop:step]``: basic indexing; the VJP puts the cotangent in its place.

    An item is an int or the (start, stop, step) of a slice, each an int or None.
    """

    items: tuple[Item, ...]

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        chosen = shape[: draw(st.integers(1, len(shape)))]
        return (tuple(draw(st.sampled_from(_items(n))) for n in chosen),)

    def source(self, *arguments: str) -> str:
        """``x[0, 1:3]``."""
        return f"{arguments[0]}[{', '.join(map(_subscript, self.items))}]"

    def _key(self, rank: int) -> tuple[Any, ...]:
        return tuple(item if isinstance(item, int) else slice(*item) for item in self.items)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Each item is a view of what those before it give; releases differ in whether a slice of all is a Node."""
        return tuple(form for count in self._ends(step.inputs[0]) for form in self._form(step, count))

    def _ends(self, x: Array) -> Iterator[int]:
        """How many items there are up to one whose Node may be the last."""
        for count in range(len(self.items), 0, -1):
            yield count
            if x[self._key(x.ndim)[:count]].shape != x[self._key(x.ndim)[: count - 1]].shape:
                return
        yield 0

    def _form(self, step: Step, count: int) -> tuple[Form, ...]:
        key = self._key(step.inputs[0].ndim)
        before = step.inputs[0][key[: max(0, count - 1)]]
        gradient = np.zeros(before.shape, step.v.dtype)
        slices = sum(isinstance(item, slice) for item in key[: max(0, count - 1)])
        gradient[_along(slices, before.ndim, key[count - 1]) if count else ...] = step.v
        return step.alone(gradient)


def _items(n: int) -> list[Item]:
    """What can index a dimension of length ``n``, and leaves something of it."""
    whole: list[Item] = [0, (None, None, None), (None, None, 2), -1, (-1, None, None)]
    return whole if n == 1 else [*whole, (1, None, None), (None, -1, None), (1, n, 2), n - 1]


def _subscript(item: Item) -> str:
    if isinstance(item, int):
        return str(item)
    start, stop, step = ("" if bound is None else str(bound) for bound in item)
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
