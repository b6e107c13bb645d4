"""Which operations change the class or layout of a tensor, and nothing else? Identities, forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.ops.rule import Rule
from hookcheck.topology.primitive import Array, Shape
from hookcheck.topology.tensors import TENSORS


class _Identity(Rule):
    """``y = x``, ``dx = v``: no number changes. torch makes one Node of it, with one input, unless said otherwise."""

    tensor: str
    _any: tuple[str, ...] = ()

    @property
    def since(self) -> str:
        """That of the class."""
        return TENSORS[self.tensor].since

    @property
    def complex_since(self) -> str:
        """The same."""
        return self.since

    def reaches(self, given: tuple[bool, ...]) -> tuple[bool, ...] | None:
        """Not to what a constant is made of, or was read from."""
        return (False,) if TENSORS[self.tensor].constant else None

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """One to three dimensions, none of them empty."""
        return 0 < len(shape) < 4 and all(shape)

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (draw(st.sampled_from(cls._any)),)

    def value(self, x: Array) -> Array:
        """``x``."""
        return x

    def pull(self, v: Array, x: Array) -> Array:
        """``v``."""
        return v


@dataclass(frozen=True)
class AsTensor(_Identity):
    """The same numbers in a tensor of that class (see `hookcheck.topology.tensors`).

    Of those that it is drawn with every step takes the result; the family ``tensor-class`` has the others.
    """

    tensor: str
    _any = ("large strides", "negative view")

    def source(self, *arguments: str) -> str:
        """The expression of the table."""
        return TENSORS[self.tensor].make.format(*arguments)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """That of the expression's last function: of rows in a list, of rows laid end to end, or of a view of numbers
        that are made for it (a stack of two, the negated ones, the conjugated ones)."""
        v = step.v
        if self.tensor == "nested":
            return (tuple(step.inner(row) for row in v),)
        if self.tensor == "jagged":
            return step.alone(v.reshape(-1, *v.shape[2:]))
        if self.tensor == "large strides":
            return step.view(np.stack([v, np.zeros_like(v)], -1), "otherwise")
        if self.tensor in ("negative view", "conjugate view"):
            return step.view(-v if self.tensor == "negative view" else v.conj(), "otherwise")
        return (step.each,)


@dataclass(frozen=True)
class AsDense(_Identity):
    """The numbers of a tensor of that class in a plain one; of those that it is drawn with a plain one may be given."""

    tensor: str
    _any = ("sparse COO",)

    def source(self, *arguments: str) -> str:
        """The expression of the table."""
        return TENSORS[self.tensor].read.format(*arguments)
