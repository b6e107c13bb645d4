"""Which operations copy elements to other places, or cast them? The gradient takes the same way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.ops.rule import Filled, Ranked, Rule, companion, like, one, some
from hookcheck.topology.primitive import MOST, Array, Gradients, Op, Operand, Shape


@dataclass(frozen=True)
class Clone(Rule):
    """``x.clone()``, in the order of ``x`` in memory, or ``contiguous``: ``dx = v``."""

    contiguous: bool = False

    complex_since = "1.8"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (draw(st.booleans()),)

    def source(self, *arguments: str) -> str:
        """The call, which names the order in memory if it is not that of ``x``."""
        return f"{arguments[0]}.clone({'memory_format=torch.contiguous_format' if self.contiguous else ''})"

    def value(self, x: Array) -> Array:
        """``x``."""
        return x

    def pull(self, v: Array, x: Array) -> Array:
        """``v``."""
        return v


@dataclass(frozen=True)
class To(Rule):
    """``x.to(torch.float32)``: the same numbers, unrounded here; ``dx = v``, its real part if ``x`` is real.

    Of a tensor that is of the dtype already, torch gives that tensor itself. Source: the documentation of
    ``torch.Tensor.to``; notes on autograd for complex numbers.
    """

    dtype: str

    _text = "{0}.to(torch.{dtype})"

    @property
    def casts(self) -> str:
        """The dtype."""
        return self.dtype

    @property
    def since(self) -> str:
        """Autograd of complex tensors is newer than the dtypes."""
        return "1.8" if self._to_complex else "1.7"

    @property
    def complex_since(self) -> str:
        """Complex tensors are cast to complex ones alone."""
        return "1.8" if self._to_complex else ""

    @property
    def _to_complex(self) -> bool:
        return self.dtype.startswith("complex")

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (draw(st.sampled_from(("float32", "float64", "bfloat16", "float16", "complex64", "complex128"))),)

    def value(self, x: Array) -> Array:
        """``x``, complex if the dtype is."""
        return x + 0j if self._to_complex else x

    def pull(self, v: Array, x: Array) -> Array:
        """``v``, real if ``x`` is."""
        return like(v, x)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Of the tensor; up to 1.9 a copy into a new one, for which there is a place too."""
        return ((None, step.of(0)),) if step.release < (1, 10) else (step.each,)


@dataclass(frozen=True)
class Flip(Ranked):
    """``x.flip(dims)``: reversed along each of them; the VJP reverses again."""

    dims: tuple[int, ...]

    complex_since = "1.8"
    _text = "{0}.flip([{dims}])"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (some(draw, len(shape)),)

    def value(self, x: Array) -> Array:
        """``x`` reversed."""
        return np.flip(x, self.dims)

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` reversed."""
        return np.flip(v, self.dims)


@dataclass(frozen=True)
class Roll(Filled):
    """``x.roll(shifts, dims)``: element ``i`` goes to ``i + shift``, around the end; the VJP rolls back."""

    shifts: tuple[int, ...]
    dims: tuple[int, ...]

    complex_since = "1.8"
    _text = "{0}.roll([{shifts}], [{dims}])"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        dims = some(draw, len(shape))
        return draw(st.tuples(*(st.sampled_from((1, -1, 2, 0)) for _ in dims))), dims

    def value(self, x: Array) -> Array:
        """``x`` rolled."""
        return np.roll(x, self.shifts, self.dims)

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` rolled back."""
        return np.roll(v, [-shift for shift in self.shifts], self.dims)


@dataclass(frozen=True)
class Tril(Rule):
    """``x.tril(diagonal)`` of matrices (..., n, m): 0 above that diagonal; the VJP does the same."""

    diagonal: int

    complex_since = "1.8"
    _text = "{0}.tril({diagonal})"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(..., n, m)."""
        return len(shape) > 1 and all(shape)

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (draw(st.sampled_from((0, -1, 1))),)

    def value(self, x: Array) -> Array:
        """``x`` up to the diagonal, 0 above it."""
        return np.tril(x, self.diagonal)

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` up to the diagonal, 0 above it."""
        return np.tril(v, self.diagonal)


@dataclass(frozen=True)
class MaskedFill(Ranked):
    """``x.masked_fill(mask, number)``: the number where the mask is set; ``dx = v``, 0 there."""

    number: float

    complex_since = "1.8"
    _text = "{0}.masked_fill({1}, {number})"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On a mask that broadcasts to the tensor's shape."""
        mask = companion(draw, shape, grows=False) or (1,)
        return cls(draw(st.sampled_from((0.0, -1.5)))), (Operand(shape), Operand(mask, "mask"))

    def value(self, x: Array, mask: Array) -> Array:
        """``x``, or the number."""
        return np.where(mask, self.number, x)

    def pull(self, v: Array, x: Array, mask: Array) -> Gradients:
        """``v``, or 0; None for the mask."""
        return np.where(mask, 0, v), None


@dataclass(frozen=True)
class Gather(Filled):
    """``x.gather(dim, index)``: ``y[i, j] = x[index[i, j], j]`` for ``dim = 0``; the VJP adds up at the index.

    The index has as many dimensions as ``x``, none but ``dim`` longer. Source: the documentation of ``torch.gather``.
    Not one number a row of a wider ``x``: 2.0 takes such an index for an expanded one, and gathers other elements
    (https://github.com/pytorch/pytorch/issues/99595).
    """

    dim: int

    complex_since = "1.8"
    _text = "{0}.gather({dim}, {1})"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On an index of at most the tensor's shape, but of any length along ``dim``."""
        dim = one(draw, len(shape))
        longest = [3 if i == dim % len(shape) else n for i, n in enumerate(shape)]
        index = draw(st.tuples(*(st.integers(1, n) for n in longest)))
        if dim % len(shape) == 0 and max(index[1:], default=0) == 1:
            index = (index[0], *shape[1:])
        return cls(dim), (Operand(shape), Operand(index, "index", shape[dim]))

    def _key(self, index: Array) -> tuple[Array, ...]:
        key = list(np.ogrid[tuple(map(slice, index.shape))])
        key[self.dim] = index
        return tuple(key)

    def value(self, x: Array, index: Array) -> Array:
        """The elements at the index."""
        return x[self._key(index)]

    def pull(self, v: Array, x: Array, index: Array) -> Gradients:
        """``v``, added up at the index; None for that."""
        gradient = np.zeros_like(x)
        np.add.at(gradient, self._key(index), v)
        return gradient, None


@dataclass(frozen=True)
class AdvancedIndex(Filled):
    """``x[index]``: the slices of ``x`` (n, ...) at an integer tensor's numbers, a copy; the VJP adds up there."""

    complex_since = "1.9"
    _text = "{0}[{1}]"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(n, ...), with room for a dimension more."""
        return super().takes(shape) and len(shape) < MOST

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On an index of one or two dimensions."""
        index = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
        return cls(), (Operand(shape), Operand(index, "index", shape[0]))

    def value(self, x: Array, index: Array) -> Array:
        """The slices at the index."""
        return x[index]

    def pull(self, v: Array, x: Array, index: Array) -> Gradients:
        """``v``, added up at the index; None for that."""
        gradient = np.zeros_like(x)
        np.add.at(gradient, index, v)
        return gradient, None

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Of the tensor; up to 1.8 there is a place for the index, too."""
        return ((step.of(0), None),) if step.release < (1, 9) else (step.each,)
