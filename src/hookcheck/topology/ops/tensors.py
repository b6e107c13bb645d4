"""Which operations change the class or layout of a tensor, and nothing else? Identities, forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.ops.rule import Arrays, Gradients, Rule
from hookcheck.topology.primitive import Array, Shape
from hookcheck.topology.tensors import TENSORS


class _Identity(Rule):
    """``y = x``, ``dx = v``: no number changes. Which Nodes torch makes of it is its own affair."""

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

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """One to three dimensions, none of them empty."""
        return 0 < len(shape) < 4 and all(shape)

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (draw(st.sampled_from(cls._any)),)

    def _value(self, x: Array) -> Arrays:
        return (x,)

    def _pull(self, v: Array, x: Array) -> Gradients:
        return (v,)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Not known."""
        return ()


@dataclass(frozen=True)
class AsTensor(_Identity):
    """The same numbers in a tensor of that class (see `hookcheck.topology.tensors`).

    Of those that it is drawn with every step takes the result; the family ``tensor-class`` has the others.
    """

    tensor: str
    _any = ("large strides", "negative view")

    def source(self, *arguments: str) -> str:
        """The expression of the table."""
        return TENSORS[self.tensor].made.format(*arguments)


@dataclass(frozen=True)
class AsDense(_Identity):
    """The numbers of a tensor of that class in a plain one; of those that it is drawn with a plain one may be given."""

    tensor: str
    _any = ("sparse COO",)

    def source(self, *arguments: str) -> str:
        """The expression of the table."""
        return TENSORS[self.tensor].read.format(*arguments)
