"""Which operations compute with one tensor, element by element? Bars are complex conjugates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.ops.rule import Rule
from hookcheck.topology.primitive import Array, Shape


@dataclass(frozen=True)
class Neg(Rule):
    """``-x``: ``dx = −v``."""

    complex_since = "1.8"
    _text = "-{0}"

    def value(self, x: Array) -> Array:
        """``−x``."""
        return -x

    def pull(self, v: Array, x: Array) -> Array:
        """``−v``."""
        return -v


@dataclass(frozen=True)
class Scale(Rule):
    """``x * number``: ``dx = number · v``."""

    number: float

    complex_since = "1.8"
    _text = "{0} * {number}"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (draw(st.sampled_from((2.0, 0.5, -1.5, 0.0))),)

    def value(self, x: Array) -> Array:
        """``number · x``."""
        return x * self.number

    def pull(self, v: Array, x: Array) -> Array:
        """``number · v``."""
        return v * self.number

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """A product with a number."""
        return ((step.of(0), None),)


@dataclass(frozen=True)
class Shift(Rule):
    """``x + number``: ``dx = v``."""

    number: float

    complex_since = "1.8"
    _text = "{0} + {number}"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (draw(st.sampled_from((1.0, 0.5, -1.5))),)

    def value(self, x: Array) -> Array:
        """``x + number``."""
        return x + self.number

    def pull(self, v: Array, x: Array) -> Array:
        """``v``."""
        return v

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """A sum with a number."""
        return ((step.of(0), None),)


@dataclass(frozen=True)
class Pow(Rule):
    """``x ** n`` with a whole ``n ≥ 0``: ``dx = n x̄ⁿ⁻¹ v``, 0 for ``n = 0``."""

    exponent: int

    complex_since = "1.8"
    _text = "{0} ** {exponent}"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (draw(st.sampled_from((2, 3, 1, 0))),)

    def value(self, x: Array) -> Array:
        """``xⁿ``."""
        return x**self.exponent

    def pull(self, v: Array, x: Array) -> Array:
        """``n x̄ⁿ⁻¹ v``."""
        return self.exponent * x.conj() ** max(self.exponent - 1, 0) * v


@dataclass(frozen=True)
class Clamp(Rule):
    """``x.clamp(minimum, maximum)``, None standing for no bound: ``dx = v`` between the bounds, 0 outside."""

    minimum: float | None
    maximum: float | None

    _text = "{0}.clamp({minimum}, {maximum})"

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return draw(st.sampled_from(((-1.0, 1.0), (0.0, None), (None, 0.5), (-0.25, 2.0))))

    def value(self, x: Array) -> Array:
        """``x``, or the bound that it is beyond."""
        return np.clip(x, self.minimum, self.maximum)

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` between the bounds, 0 outside."""
        return v * (np.clip(x, self.minimum, self.maximum) == x)

    def disputed(self, *operands: Array) -> bool:
        """At a bound: the gradient is 1 there, and 0 from 2.14 on (pytorch#191142)."""
        (x,) = operands
        return any(bool((x == bound).any()) for bound in (self.minimum, self.maximum) if bound is not None)


@dataclass(frozen=True)
class Exp(Rule):
    """``torch.exp(x)``: ``dx = v`` times the conjugate of ``eˣ``."""

    complex_since = "1.8"
    _text = "torch.exp({0})"

    def value(self, x: Array) -> Array:
        """``eˣ``."""
        return np.exp(x)

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` times the conjugate of ``eˣ``."""
        return v * np.exp(x.conj())


@dataclass(frozen=True)
class Log(Rule):
    """``torch.log(x)`` of positive numbers: ``dx = v / x``."""

    _text = "torch.log({0})"
    _domain = "positive"

    def value(self, x: Array) -> Array:
        """``log x``."""
        return np.log(x)

    def pull(self, v: Array, x: Array) -> Array:
        """``v / x``."""
        return v / x


@dataclass(frozen=True)
class Sqrt(Rule):
    """``torch.sqrt(x)`` of positive numbers: ``dx = v / (2 √x)``."""

    _text = "torch.sqrt({0})"
    _domain = "positive"

    def value(self, x: Array) -> Array:
        """``√x``."""
        return np.sqrt(x)

    def pull(self, v: Array, x: Array) -> Array:
        """``v / (2 √x)``."""
        return v / (2 * np.sqrt(x))


@dataclass(frozen=True)
class Abs(Rule):
    """``torch.abs(x)`` of real numbers: ``dx = v sgn(x)``, 0 at 0."""

    _text = "torch.abs({0})"

    def value(self, x: Array) -> Array:
        """``|x|``."""
        return np.abs(x)

    def pull(self, v: Array, x: Array) -> Array:
        """``v sgn(x)``."""
        return v * np.sign(x)


@dataclass(frozen=True)
class Sin(Rule):
    """``torch.sin(x)``: ``dx = v cos(x̄)``."""

    curved = True
    complex_since = "1.8"
    _text = "torch.sin({0})"

    def value(self, x: Array) -> Array:
        """``sin(x)``."""
        return np.sin(x)

    def pull(self, v: Array, x: Array) -> Array:
        """``v cos(x̄)``."""
        return v * np.cos(x.conj())
