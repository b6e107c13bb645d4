"""Activations that have something to set, or to learn: slopes, thresholds, an approximation, an axis.

Thresholds are drawn as multiples of 1/16, so that no drawn input lies on a kink; at 0, which other layers do give, the
slope is that of the branch ``x ≤ 0``. Where a source is not named it is the documentation of the class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, NodeGradient, Step
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.unary import Elementwise, Unary, drawn, sigmoid
from hookcheck.topology.primitive import Array, Gradients, Layer, Operand, Shape, SingleStep

_erf = np.frompyfunc(math.erf, 1, 1)


@dataclass(frozen=True)
class ELU(Elementwise):
    """``nn.ELU``: ``x`` where ``x > 0``, else ``α (eˣ − 1)``; the slopes are 1 and ``α eˣ``."""

    rounded_once = True

    alpha: float = drawn(1.0, 0.5, 2.0, default=1.0)
    inplace: bool = drawn(False, True, default=False)

    def value(self, x: Array) -> Array:
        """``x`` or ``α (eˣ − 1)``."""
        return np.where(x > 0, x, self.alpha * np.expm1(np.minimum(x, 0)))

    def slope(self, x: Array) -> Array:
        """1 or ``α eˣ``."""
        return np.where(x > 0, 1, self.alpha * np.exp(np.minimum(x, 0)))


@dataclass(frozen=True)
class CELU(Elementwise):
    """``nn.CELU``: ``x`` where ``x > 0``, else ``α (e^(x/α) − 1)``; the slopes are 1 and ``e^(x/α)``."""

    alpha: float = drawn(1.0, 0.5, 2.0, default=1.0)
    inplace: bool = drawn(False, True, default=False)

    def value(self, x: Array) -> Array:
        """``x`` or ``α (e^(x/α) − 1)``."""
        return np.where(x > 0, x, self.alpha * np.expm1(np.minimum(x, 0) / self.alpha))

    def slope(self, x: Array) -> Array:
        """1 or ``e^(x/α)``."""
        return np.exp(np.minimum(x, 0) / self.alpha)


@dataclass(frozen=True)
class GELU(Elementwise):
    """``nn.GELU``: ``x Φ(x)``, ``Φ`` the normal distribution function; with ``approximate="tanh"`` ``x (1 + t) / 2``.

    There ``t = tanh u``, ``u = √(2/π) (x + 0.044715 x³)``. The slopes are ``Φ + x e^(−x²/2) / √(2π)`` and
    ``(1 + t) / 2 + x (1 − t²) u' / 2``.
    """

    curved = True
    rounded_once = True

    approximate: str = drawn("none", "tanh", default="none")

    @property
    def since(self) -> str:
        """The release that brought the setting, if it is used."""
        return "1.7" if self.approximate == "none" else "1.12"

    def value(self, x: Array) -> Array:
        """``x Φ(x)``, or nearly."""
        return x * self._below(x)

    def slope(self, x: Array) -> Array:
        """``Φ(x) + x Φ'(x)``, or nearly."""
        if self.approximate == "none":
            density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
        else:
            t = 2 * self._below(x) - 1
            density = (1 - t**2) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2) / 2
        return self._below(x) + x * density

    def _below(self, x: Array) -> Array:
        """``Φ(x)``, or nearly: the probability that a normal number lies below ``x``."""
        if self.approximate == "none":
            return (1 + np.asarray(_erf(x / math.sqrt(2)), dtype=x.dtype)) / 2
        return (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


@dataclass(frozen=True)
class Softplus(Elementwise):
    """``nn.Softplus``: ``log(1 + e^(βx)) / β``, and ``x`` where ``βx > threshold``; the slopes are ``σ(βx)`` and 1.

    Thresholds are drawn where the two branches are close: some torch compared ``βy`` with them for the gradient. The
    slope jumps between them all the same, and has no slope there, which a second backward would ask for; so
    ``threshold / β`` is no number that sums of drawn numbers come to, or too large for them.
    """

    curved = True
    rounded_once = True

    beta: float = drawn(1.0, 0.5, 7.0, default=1.0)
    threshold: float = drawn(20.0, 16.0, default=20.0)

    def value(self, x: Array) -> Array:
        """``log(1 + e^(βx)) / β``, or ``x``."""
        return np.where(self.beta * x > self.threshold, x, np.logaddexp(0, self.beta * x) / self.beta)

    def slope(self, x: Array) -> Array:
        """``σ(βx)``, or 1."""
        return np.where(self.beta * x > self.threshold, 1, sigmoid(self.beta * x))


@dataclass(frozen=True)
class LeakyReLU(Elementwise):
    """``nn.LeakyReLU``: ``x`` where ``x > 0``, else ``a x``; the slopes are 1 and ``a``, the ``negative_slope``."""

    rounded_once = True
    exact = True

    negative_slope: float = drawn(0.01, 0.5, 0.0, 1.0, default=0.01)
    inplace: bool = drawn(False, True, default=False)

    def value(self, x: Array) -> Array:
        """``x`` or ``a x``."""
        return x * self.slope(x)

    def slope(self, x: Array) -> Array:
        """1 or ``a``."""
        return np.where(x > 0, 1, self.negative_slope)


@dataclass(frozen=True)
class RReLU(Elementwise):
    """``nn.RReLU`` with ``lower = upper = a``: ``x`` where ``x > 0``, else ``a x``; the slopes are 1 and ``a``.

    In training torch draws ``a`` between both bounds, in eval mode it takes their mean; here all of these are one.
    """

    negative_slope: float = drawn(0.125, 0.25, 1.0, default=0.125)
    inplace: bool = drawn(False, True, default=False)

    def source(self) -> str:
        """The constructor call."""
        return f"nn.RReLU({self.negative_slope}, {self.negative_slope}{', inplace=True' if self.inplace else ''})"

    def value(self, x: Array) -> Array:
        """``x`` or ``a x``."""
        return x * self.slope(x)

    def slope(self, x: Array) -> Array:
        """1 or ``a``."""
        return np.where(x > 0, 1, self.negative_slope).astype(x.dtype)


@dataclass(frozen=True)
class PReLU(SingleStep):
    """``nn.PReLU``: ``y = x`` where ``x > 0``, else ``w x``; ``w`` is one number, or one for each channel (axis 1).

    ``dx = v`` or ``w v``; ``dw = Σ v x`` over the elements ``x ≤ 0`` (of the channel).
    """

    rounded_once = True

    num_parameters: int = 1

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """One weight, or as many as there are channels."""
        return cls(draw(st.sampled_from([1, *shape[1:2]]))), (Operand(shape),)

    def parameters(self) -> dict[str, Shape]:
        """``weight`` (num_parameters,)."""
        return {"weight": (self.num_parameters,)}

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)

    def value(self, x: Array, weight: Array) -> Array:
        """``x`` (N, num_parameters, ...), or of any shape if there is one weight, to ``y`` of its shape."""
        return np.where(x > 0, x, self._spread(weight, x) * x)

    def pull(self, v: Array, x: Array, weight: Array) -> Gradients:
        """``dx`` of ``x``'s shape; ``dw`` (num_parameters,)."""
        others = tuple(axis for axis in range(x.ndim) if axis != 1 or self.num_parameters == 1)
        dw = np.where(x > 0, 0, v * x).sum(others).reshape(self.num_parameters)
        return np.where(x > 0, v, self._spread(weight, x) * v), {"weight": dw}

    def _spread(self, weight: Array, x: Array) -> Array:
        return weight.reshape(-1, *(1,) * (x.ndim - 2)) if self.num_parameters > 1 else weight.reshape(())

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Of ``x`` and of ``w``, which since 2.0 is seen with as many dimensions as ``x`` has (pytorch#91238)."""
        entry, rank = step.of("weight"), step.inputs[0].ndim
        assert entry is not None
        if step.release < (2, 0) or rank == 1 or entry.gradient is None:
            return (step.each,)
        shape = (1, self.num_parameters, *[1] * (rank - 2)) if rank > 1 else ()
        return ((step.of(0), NodeGradient(entry.gradient.reshape(shape), entry.leads)),)


@dataclass(frozen=True)
class Threshold(Elementwise):
    """``nn.Threshold``: ``x`` where ``x > threshold``, else ``value``; the slopes are 1 and 0.

    No value above the threshold is drawn: a gradient read off an output written in place could not tell the branches.
    """

    exact = True

    threshold: float = drawn(0.0, 0.5, 1.5)
    replacement: float = drawn(0.0, -1.0)
    inplace: bool = drawn(False, True, default=False)

    def value(self, x: Array) -> Array:
        """``x`` or ``value``."""
        return np.where(x > self.threshold, x, self.replacement)

    def slope(self, x: Array) -> Array:
        """1 or 0."""
        return (x > self.threshold).astype(float)


@dataclass(frozen=True)
class Hardtanh(Elementwise):
    """``nn.Hardtanh``: ``x`` cut off at ``min_val`` and ``max_val``; the slope between them is 1, else 0."""

    rounded_once = True
    exact = True

    min_val: float = drawn(-1.0, -0.5, 0.0, default=-1.0)
    max_val: float = drawn(1.0, 2.0, default=1.0)
    inplace: bool = drawn(False, True, default=False)

    def value(self, x: Array) -> Array:
        """``min(max(x, min_val), max_val)``."""
        return np.clip(x, self.min_val, self.max_val)

    def slope(self, x: Array) -> Array:
        """1 where ``min_val < x < max_val``, else 0."""
        return ((x > self.min_val) & (x < self.max_val)).astype(float)


@dataclass(frozen=True)
class Hardshrink(Elementwise):
    """``nn.Hardshrink``: ``x`` where ``|x| > λ``, else 0; the slopes are 1 and 0."""

    exact = True

    lambd: float = drawn(0.5, 0.25, 1.0, default=0.5)

    def value(self, x: Array) -> Array:
        """``x`` or 0."""
        return x * self.slope(x)

    def slope(self, x: Array) -> Array:
        """1 where ``|x| > λ``, else 0."""
        return (np.abs(x) > self.lambd).astype(float)


@dataclass(frozen=True)
class Softshrink(Elementwise):
    """``nn.Softshrink``: ``x`` moved by ``λ`` towards 0, at most to it; the slope is 1 where ``|x| > λ``, else 0."""

    exact = True

    lambd: float = drawn(0.5, 0.25, 1.0, default=0.5)

    def value(self, x: Array) -> Array:
        """``x − λ`` above ``λ``, ``x + λ`` below ``−λ``, else 0."""
        return x - np.clip(x, -self.lambd, self.lambd)

    def slope(self, x: Array) -> Array:
        """1 where ``|x| > λ``, else 0."""
        return (np.abs(x) > self.lambd).astype(float)


@dataclass(frozen=True)
class GLU(Unary):
    """``nn.GLU``: ``x`` split in halves ``a`` and ``b`` along ``dim``, ``y = a σ(b)``.

    ``da = v σ(b)`` and ``db = v a σ(b) (1 − σ(b))``, side by side again.
    """

    rounded_once = True

    dim: int = -1

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """At least one axis of even length."""
        return all(shape) and any(n % 2 == 0 for n in shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Along any axis of even length, counted from the back or from the front."""
        rank = len(shape)
        even = [axis for axis in (*range(-1, -rank - 1, -1), *range(rank)) if shape[axis] % 2 == 0]
        return cls(draw(st.sampled_from(even))), (Operand(shape),)

    def value(self, x: Array) -> Array:
        """``a σ(b)``."""
        a, b = np.split(x, 2, self.dim)
        return a * sigmoid(b)

    def pull(self, v: Array, x: Array) -> Array:
        """``da`` and ``db``."""
        a, b = np.split(x, 2, self.dim)
        gate = sigmoid(b)
        return np.concatenate([v * gate, v * a * gate * (1 - gate)], self.dim)
