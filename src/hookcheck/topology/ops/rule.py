"""What do operations share? Printing from a template, what they are drawn on, and broadcasting undone."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.primitive import MOST, Array, Op, Operand, Shape


def like(gradient: Array, x: Array) -> Array:
    """``gradient`` as one of ``x``: of a real tensor it is real (notes on autograd for complex numbers)."""
    return gradient if np.iscomplexobj(x) else gradient.real


def unbroadcast(gradient: Array, x: Array) -> Array:
    """``gradient``, of a shape that ``x`` was broadcast to, summed to the shape of ``x``, and real if ``x`` is."""
    ahead = gradient.ndim - x.ndim
    axes = tuple(i for i, n in enumerate(gradient.shape) if i < ahead or x.shape[i - ahead] != n)
    return like(gradient.sum(axes).reshape(x.shape) if axes else gradient, x)


def companion(draw: st.DrawFn, shape: Shape, grows: bool = True) -> Shape:
    """A shape that broadcasts with ``shape``, and that makes the result larger only if it ``grows``."""
    trailing = shape[draw(st.integers(0, len(shape))) :]
    sides = draw(st.tuples(*(st.sampled_from((n, 2 if n == 1 and grows else 1)) for n in trailing)))
    ahead = draw(st.sampled_from(((), (2,)))) if grows and len(trailing) == len(shape) < MOST else ()
    return (*ahead, *sides)


def some(draw: st.DrawFn, rank: int) -> Shape:
    """One or more different dimensions out of ``rank``, in order."""
    return tuple(sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1))))


def one(draw: st.DrawFn, rank: int) -> int:
    """A dimension out of ``rank``, counted from the front or from the back."""
    return draw(st.one_of(st.integers(0, rank - 1), st.integers(-rank, -1)))


class Rule(Op):
    """An operation by its template and its formulas.

    In the template ``_text``, ``{0}`` is the first argument and ``{dim}`` the setting of that name; a tuple is printed
    without its parentheses. ``_domain`` is where the numbers of its one input come from.
    """

    _text = ""
    _domain = "real"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape, empty ones too."""
        return True

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On one tensor, with settings that suit its shape."""
        return cls(*cls._settings(draw, shape)), (Operand(shape, cls._domain),)

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return ()

    def source(self, *arguments: str) -> str:
        """The template with arguments and settings filled in."""
        return self._text.format(*arguments, **{name: _printed(setting) for name, setting in vars(self).items()})


def _printed(setting: Any) -> Any:
    return ", ".join(map(repr, setting)) if isinstance(setting, tuple) else setting


class Ranked(Rule):
    """An operation along the dimensions of a tensor that has some."""

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with a dimension; sides of 0 are allowed."""
        return len(shape) > 0


class Filled(Rule):
    """An operation along the dimensions of a tensor that has some, none of them empty."""

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with a dimension and an element."""
        return len(shape) > 0 and all(shape)


class Several(Filled):
    """An operation that gives a tuple, be it of one tensor."""

    def result(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """All outputs."""
        return outputs


class Broadcasting(Rule):
    """An operation on two tensors whose shapes broadcast; in place, to the first one's shape.

    The numbers of the second come from the domain ``_other``.
    """

    _other = "real"
    _grows = True

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On a second tensor of the same shape, or of one that broadcasts with it."""
        step, other = cls(*cls._settings(draw, shape)), companion(draw, shape, cls._grows)
        return step, (Operand(shape, cls._domain), Operand(other, cls._other))

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Of both tensors, be they of integers."""
        return ((step.of(0), step.of(1)),)
