"""Activations whose formula is fixed (in-place or not is all that can be set): y = f(x), dx = v · f'(x).

At a kink the slope is 0 where one of both sides is flat, as torch documents (notes on autograd, 'Gradients for
non-differentiable functions'). Where a source is not named it is the documentation of the class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.unary import Elementwise, Unary, drawn, sgn, sigmoid
from hookcheck.topology.primitive import Array


@dataclass(frozen=True)
class Sigmoid(Elementwise):
    """``nn.Sigmoid``: ``σ(x) = 1 / (1 + e⁻ˣ)``, ``σ' = σ (1 − σ)``."""

    curved = True
    complex_since = "1.10"  # 1.9 has no complex sigmoid yet

    def value(self, x: Array) -> Array:
        """``σ(x)``."""
        return sigmoid(x)

    def slope(self, x: Array) -> Array:
        """``σ(x) (1 − σ(x))``."""
        y = sigmoid(x)
        return y * (1 - y)


@dataclass(frozen=True)
class Tanh(Elementwise):
    """``nn.Tanh``: ``tanh' = 1 − tanh²``."""

    curved = True
    complex_since = "1.8"

    def value(self, x: Array) -> Array:
        """``tanh(x)``."""
        return np.tanh(x)

    def slope(self, x: Array) -> Array:
        """``1 − tanh(x)²``."""
        return 1 - np.tanh(x) ** 2


@dataclass(frozen=True)
class Tanhshrink(Elementwise):
    """``nn.Tanhshrink``: ``x − tanh(x)``, of slope ``tanh(x)²``."""

    curved = True
    complex_since = "1.9"

    def value(self, x: Array) -> Array:
        """``x − tanh(x)``."""
        return x - np.tanh(x)

    def slope(self, x: Array) -> Array:
        """``tanh(x)²``."""
        return np.tanh(x) ** 2

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """The difference of ``x`` and its tanh."""
        return ((step.inner(step.v), step.inner(-step.v)),)


@dataclass(frozen=True)
class Softsign(Unary):
    """``nn.Softsign``: ``y = x / (1 + |x|)``, ``dx = v / (1 + |x|) − sgn(x) Re(v̄ x) / (1 + |x|)²``.

    The second term is what ``|x|`` adds: ``d|x| = Re(sgn(x)* dx)``. For real numbers both make ``v / (1 + |x|)²``.
    """

    complex_since = "1.9"  # complex quotients and absolute values are differentiable from this release on

    def value(self, x: Array) -> Array:
        """``x / (1 + |x|)``."""
        return x / (1 + np.abs(x))

    def pull(self, v: Array, x: Array) -> Array:
        """``v / (1 + |x|) − sgn(x) Re(v̄ x) / (1 + |x|)²``."""
        size = np.abs(x)
        return v / (1 + size) - sgn(x) * (np.conj(v) * x).real / (1 + size) ** 2

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """The quotient of ``x`` and ``1 + |x|``, which is real."""
        (x,), v = step.inputs, step.v
        size = 1 + np.abs(x)
        return ((step.inner(v / size), step.inner(-(np.conj(v) * x).real / size**2)),)


@dataclass(frozen=True)
class LogSigmoid(Elementwise):
    """``nn.LogSigmoid``: ``log σ(x) = −log(1 + e⁻ˣ)``, of slope ``σ(−x)``."""

    curved = True
    rounded_once = True

    def value(self, x: Array) -> Array:
        """``log σ(x)``."""
        return -np.logaddexp(0, -x)

    def slope(self, x: Array) -> Array:
        """``σ(−x)``."""
        return sigmoid(-x)


@dataclass(frozen=True)
class SiLU(Elementwise):
    """``nn.SiLU``: ``x σ(x)``, of slope ``σ (1 + x (1 − σ))``."""

    curved = True
    rounded_once = True

    inplace: bool = drawn(False, True, default=False)

    def value(self, x: Array) -> Array:
        """``x σ(x)``."""
        return x * sigmoid(x)

    def slope(self, x: Array) -> Array:
        """``σ (1 + x (1 − σ))``."""
        y = sigmoid(x)
        return y * (1 + x * (1 - y))


@dataclass(frozen=True)
class Mish(Elementwise):
    """``nn.Mish``: ``x t`` with ``t = tanh(log(1 + eˣ))``, of slope ``t + x (1 − t²) σ(x)``."""

    curved = True
    rounded_once = True
    since = "1.9"

    inplace: bool = drawn(False, True, default=False)

    def value(self, x: Array) -> Array:
        """``x t``."""
        return x * np.tanh(np.logaddexp(0, x))

    def slope(self, x: Array) -> Array:
        """``t + x (1 − t²) σ(x)``."""
        t = np.tanh(np.logaddexp(0, x))
        return t + x * (1 - t**2) * sigmoid(x)


@dataclass(frozen=True)
class ReLU(Elementwise):
    """``nn.ReLU``: ``max(0, x)``, of slope 1 where ``x > 0``, else 0."""

    exact = True

    inplace: bool = drawn(False, True, default=False)

    def value(self, x: Array) -> Array:
        """``max(0, x)``."""
        return np.maximum(x, 0)

    def slope(self, x: Array) -> Array:
        """1 where ``x > 0``, else 0."""
        return (x > 0).astype(float)


@dataclass(frozen=True)
class ReLU6(Elementwise):
    """``nn.ReLU6``: ``min(max(0, x), 6)``, of slope 1 where ``0 < x < 6``, else 0."""

    exact = True

    inplace: bool = drawn(False, True, default=False)

    def value(self, x: Array) -> Array:
        """``min(max(0, x), 6)``."""
        return np.clip(x, 0, 6)

    def slope(self, x: Array) -> Array:
        """1 where ``0 < x < 6``, else 0."""
        return ((x > 0) & (x < 6)).astype(float)


@dataclass(frozen=True)
class Hardsigmoid(Elementwise):
    """``nn.Hardsigmoid``: 0 up to −3, 1 from 3 on, ``x / 6 + 1/2`` between; the slope there is 1/6, else 0.

    Torch's slope is 1/6 rounded to float32 whatever the dtype: in float64 its gradients are 1 + 3e-8 times too large.
    """

    rounded_once = True

    inplace: bool = drawn(False, True, default=False)

    def precision(self, device: str) -> str:
        """That of torch's 1/6."""
        return "float32"

    def value(self, x: Array) -> Array:
        """``x / 6 + 1/2``, cut off at 0 and 1."""
        return np.clip(x / 6 + 0.5, 0, 1)

    def slope(self, x: Array) -> Array:
        """1/6 where ``|x| < 3``, else 0."""
        return (np.abs(x) < 3).astype(x.dtype) / 6


@dataclass(frozen=True)
class Hardswish(Elementwise):
    """``nn.Hardswish``: 0 up to −3, ``x`` from 3 on, ``x (x + 3) / 6`` between; the slope there is ``x / 3 + 1/2``.

    On a CUDA device torch multiplies by 1/6 rounded to float32 whatever the dtype, where the CPU divides by 6.
    """

    rounded_once = True

    inplace: bool = drawn(False, True, default=False)

    def precision(self, device: str) -> str:
        """That of torch's 1/6, where there is one."""
        return "float32" if device == "cuda" else ""

    def value(self, x: Array) -> Array:
        """``x`` times its hard sigmoid."""
        return x * np.clip(x / 6 + 0.5, 0, 1)

    def slope(self, x: Array) -> Array:
        """0 up to −3, 1 from 3 on, ``x / 3 + 1/2`` between."""
        return np.where(np.abs(x) < 3, x / 3 + 0.5, x > 0)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@dataclass(frozen=True)
class SELU(Elementwise):
    """``nn.SELU``: ``s x`` where ``x > 0``, else ``s α (eˣ − 1)``; the slopes are ``s`` and ``s α eˣ``.

    The constants are those of Klambauer et al., 'Self-Normalizing Neural Networks' (2017). 0 is in the second branch,
    as in the documentation of ``torch.nn.ELU``.
    """

    inplace: bool = drawn(False, True, default=False)

    def value(self, x: Array) -> Array:
        """``s x`` or ``s α (eˣ − 1)``."""
        return SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0)))

    def slope(self, x: Array) -> Array:
        """``s`` or ``s α eˣ``."""
        return SELU_SCALE * np.where(x > 0, 1, SELU_ALPHA * np.exp(np.minimum(x, 0)))
