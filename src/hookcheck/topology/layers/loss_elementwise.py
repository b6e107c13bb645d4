"""Losses with one loss for each element: L = f(x, y), dx = v · ∂f/∂x, dy = v · ∂f/∂y."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.loss import REDUCTIONS, _Elementwise
from hookcheck.topology.layers.unary import sgn
from hookcheck.topology.primitive import Array, Arrays, Gradients, Layer, Operand, Shape


class _OfDifference(_Elementwise):
    """``f(d)`` of the difference ``d = x − y``: the slopes are ``f'(d)`` and ``−f'(d)``."""

    def value(self, x: Array, y: Array) -> Array:
        """``f(x − y)``."""
        return self.of(x - y)

    def slopes(self, x: Array, y: Array) -> Arrays:
        """``f'(x − y)`` and its negative."""
        slope = self.slope_of(x - y)
        return slope, -slope

    @abstractmethod
    def of(self, d: Array) -> Array:
        """``f(d)``."""

    @abstractmethod
    def slope_of(self, d: Array) -> Array:
        """``f'(d)``."""


@dataclass(frozen=True)
class L1Loss(_OfDifference):
    """``nn.L1Loss``: ``|x − y|`` of equal shapes, also of complex numbers; ``f'(d) = d / |d|``, and 0 at ``d = 0``.

    Source: the documentation of ``torch.nn.L1Loss``; for the kink, torch's notes on autograd.
    """

    complex_since = "1.9"  # the first release in which the absolute value of complex numbers is differentiable

    reduction: str = "mean"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Two real tensors of one shape."""
        return cls(draw(REDUCTIONS)), (Operand(shape), Operand(shape))

    def of(self, d: Array) -> Array:
        """``|d|``."""
        return np.abs(d)

    def slope_of(self, d: Array) -> Array:
        """``d / |d|``, and 0 at 0."""
        return sgn(d)

    def fused(self, step: Step) -> bool:
        """Up to 1.12; since then it is the absolute difference, reduced (pytorch#78257)."""
        return step.release < (1, 13)

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """The absolute value of the difference."""
        gradient = step.v.real * self.slope_of(step.inputs[0] - step.inputs[1])
        return step.alone(gradient)


@dataclass(frozen=True)
class MSELoss(_OfDifference):
    """``nn.MSELoss``: ``(x − y)²`` of equal shapes; ``f'(d) = 2 d``. Source: the documentation of ``nn.MSELoss``."""

    smooth = True

    reduction: str = "mean"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Two real tensors of one shape."""
        return cls(draw(REDUCTIONS)), (Operand(shape), Operand(shape))

    def of(self, d: Array) -> Array:
        """``d²``."""
        return d**2

    def slope_of(self, d: Array) -> Array:
        """``2 d``."""
        return 2 * d

    def fused(self, step: Step) -> bool:
        """One Node."""
        return True


@dataclass(frozen=True)
class SmoothL1Loss(_OfDifference):
    """``nn.SmoothL1Loss``: with ``d = x − y``, ``d² / (2 beta)`` where ``|d| < beta``, else ``|d| − beta / 2``.

    ``f'(d) = d / beta`` and ``sign(d)``. Source: the documentation of ``torch.nn.SmoothL1Loss``.
    """

    reduction: str = "mean"
    beta: float = 1.0

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A target on a finer grid than the input, so that no difference is ``beta`` or 0."""
        return cls(draw(REDUCTIONS), draw(st.sampled_from([1.0, 0.5, 2.0, 0.0]))), (
            Operand(shape),
            Operand(shape, "unit"),
        )

    def of(self, d: Array) -> Array:
        """A parabola near 0, ``|d| − beta / 2`` elsewhere."""
        size = np.abs(d)
        return np.where(size < self.beta, d**2 / (2 * self.beta or 1), size - self.beta / 2)

    def slope_of(self, d: Array) -> Array:
        """``d / beta``, clipped to ±1."""
        return np.where(np.abs(d) < self.beta, d / (self.beta or 1), np.sign(d))

    def fused(self, step: Step) -> bool:
        """One Node; since 2.1 ``beta = 0`` is `L1Loss` for ``torch.nn.functional``."""
        return self.beta > 0 or step.release < (2, 1)

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """That of `L1Loss`."""
        return step.alone(step.v * self.slope_of(step.inputs[0] - step.inputs[1]))


@dataclass(frozen=True)
class HuberLoss(_OfDifference):
    """``nn.HuberLoss``: with ``d = x − y``, ``d² / 2`` where ``|d| ≤ delta``, else ``delta (|d| − delta / 2)``.

    ``f'(d)`` is ``d`` clipped to ``±delta``. Source: the documentation of ``torch.nn.HuberLoss``.
    """

    since = "1.9"

    reduction: str = "mean"
    delta: float = 1.0

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A target on a finer grid than the input, so that no difference is ``delta``."""
        return cls(draw(REDUCTIONS), draw(st.sampled_from([1.0, 0.5, 2.0]))), (Operand(shape), Operand(shape, "unit"))

    def of(self, d: Array) -> Array:
        """A parabola near 0, a line elsewhere."""
        size = np.abs(d)
        return np.where(size <= self.delta, d**2 / 2, self.delta * (size - self.delta / 2))

    def slope_of(self, d: Array) -> Array:
        """``d``, clipped."""
        return np.clip(d, -self.delta, self.delta)

    def fused(self, step: Step) -> bool:
        """One Node."""
        return True


@dataclass(frozen=True)
class PoissonNLLLoss(_Elementwise):
    """``nn.PoissonNLLLoss``: ``eˣ − y x``, or without ``log_input`` ``x − y ln(x + eps)``.

    ``full`` adds Stirling's ``y ln y − y + ln(2 π y) / 2`` where ``y > 1``. ``∂x = eˣ − y`` or ``1 − y / (x + eps)``;
    ``∂y = −x`` or ``−ln(x + eps)``, and ``ln y + 1 / (2 y)`` of the full form.
    Source: the documentation of ``torch.nn.PoissonNLLLoss``.
    """

    keywords = ("log_input", "target")
    log_input: bool = True
    full: bool = False
    eps: float = 1e-8
    reduction: str = "mean"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A positive target, and a positive input unless it is a logarithm."""
        layer = cls(
            not draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from([1e-8, 0.125])), draw(REDUCTIONS)
        )
        return layer, (Operand(shape, "real" if layer.log_input else "positive"), Operand(shape, "positive"))

    def value(self, x: Array, y: Array) -> Array:
        """The negative log likelihood of ``y``."""
        value: Array = np.exp(x) - y * x if self.log_input else x - y * np.log(x + self.eps)
        stirling = y * np.log(y) - y + np.log(2 * np.pi * y) / 2
        return value + np.where(y > 1, stirling, 0) if self.full else value

    def slopes(self, x: Array, y: Array) -> Arrays:
        """``∂x`` and ``∂y``."""
        of_x: Array = np.exp(x) - y if self.log_input else 1 - y / (x + self.eps)
        of_y: Array = -x if self.log_input else -np.log(x + self.eps)
        return of_x, of_y + np.where(y > 1, np.log(y) + 1 / (2 * y), 0) if self.full else of_y

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """A difference, to which the full form adds what depends on the target alone."""
        if self.full:
            return ((step.inner(step.v), step.inner(step.v, 1)),)
        return ((step.inner(step.v, 0), step.inner(-step.v)),)


@dataclass(frozen=True)
class GaussianNLLLoss(_Elementwise):
    """``nn.GaussianNLLLoss``: ``(ln s + (x − y)² / s) / 2`` with ``s = max(var, eps)``; ``full`` adds ``ln(2 π) / 2``.

    ``y`` may have 1 for its last axis; ``var`` may have that, or lack the axis. With ``d = x − y``: ``∂x = d / s``,
    ``∂y = −d / s``, ``∂var = (1 − d² / s) / (2 s)``; the maximum passes gradients as if it were not there.
    Source: the documentation of ``torch.nn.GaussianNLLLoss``.
    """

    keywords = ("input", "target", "var")
    since = "1.9"  # new in 1.8, where ``reduction="none"`` still summed within a sample: LY-05
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A variance above ``eps``, where autograd and the formula agree; perhaps one for all of the last axis."""
        layer = cls(draw(st.booleans()), draw(st.sampled_from([1e-6, 1 / 64])), draw(REDUCTIONS))
        shared = [(*shape[:-1], 1)] if shape else []
        y = draw(st.sampled_from([shape, *shared]))
        var = draw(st.sampled_from([shape, *shared, *([shape[:-1]] if shape else [])]))
        return layer, (Operand(shape), Operand(y), Operand(var, "positive"))

    def value(self, x: Array, y: Array, var: Array) -> Array:
        """The negative log likelihood of ``y``."""
        d, s = self._parts(x, y, var)
        return (np.log(s) + d**2 / s + (math.log(2 * math.pi) if self.full else 0)) / 2

    def slopes(self, x: Array, y: Array, var: Array) -> Arrays:
        """``∂x``, ``∂y`` and ``∂var``."""
        d, s = self._parts(x, y, var)
        return d / s, -d / s, (1 - d**2 / s) / (2 * s)

    def _parts(self, x: Array, y: Array, var: Array) -> tuple[Array, Array]:
        """``x − y`` and ``s``, with all of ``x``'s axes."""
        return x - y, np.maximum(_aligned(var, x), self.eps)

    def pull(self, v: Array, x: Array, y: Array, var: Array) -> Gradients:
        """As for every element-wise loss, with the axis that ``var`` lacks put back first and taken off last."""
        dx, dy, d_var = super().pull(v, x, y, _aligned(var, x))
        return dx, dy, d_var.reshape(var.shape)

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """The half of what depends on the inputs, to which the full form adds a number."""
        return ((step.inner(step.v if self.full else step.v / 2), None),)


def _aligned(var: Array, x: Array) -> Array:
    """``var`` with a last axis of 1 if it lacks the last axis of ``x``, as torch asks by the shapes."""
    return var[..., None] if var.shape != x.shape and var.shape == x.shape[:-1] else var


@dataclass(frozen=True)
class KLDivLoss(_Elementwise):
    """``nn.KLDivLoss``: ``y (ln y − x)`` of equal shapes, with ``log_target`` ``eʸ (y − x)``.

    ``∂x = −y`` and ``∂y = ln y + 1 − x``; with ``log_target`` ``∂x = −eʸ`` and ``∂y = eʸ (y − x + 1)``. The reduction
    ``batchmean`` divides the sum by the length of the first axis. Source: the documentation of ``torch.nn.KLDivLoss``.
    """

    reduction: str = "mean"
    log_target: bool = False

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A target of probabilities, or of their logarithms."""
        layer = cls(
            draw(st.sampled_from(["mean", "none", "sum", *(["batchmean"] if shape else [])])), draw(st.booleans())
        )
        return layer, (Operand(shape), Operand(shape, "real" if layer.log_target else "unit"))

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """For ``batchmean`` the quotient of the sum and the length."""
        if self.reduction != "batchmean":
            return super().last_node(step)
        return ((step.inner(step.v / len(step.inputs[0])), None),)

    def fused(self, step: Step) -> bool:
        """Up to 1.12 (pytorch#80334)."""
        return step.release < (1, 13)

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """The product ``eʸ (y − x)``, or the difference ``y ln y − y x``."""
        (x, y), v = step.inputs, step.v
        if self.log_target:
            return ((step.inner(v * (y - x), 1), step.inner(v * np.exp(y))),)
        return ((step.inner(v, 1), step.inner(-v)),)

    def _divisor(self, inputs: Arrays, parameters: dict[str, Array]) -> float:
        return float(len(inputs[0])) if self.reduction == "batchmean" else super()._divisor(inputs, parameters)

    def value(self, x: Array, y: Array) -> Array:
        """The share of each element in the divergence of ``y`` from ``x``."""
        return np.exp(y) * (y - x) if self.log_target else y * (np.log(y) - x)

    def slopes(self, x: Array, y: Array) -> Arrays:
        """``∂x`` and ``∂y``."""
        if self.log_target:
            return -np.exp(y), np.exp(y) * (y - x + 1)
        return -y, np.log(y) + 1 - x
