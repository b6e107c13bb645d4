"""Losses of coins, element by element: the cross entropy of two probabilities, or of a logit and a probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.loss import EPSILON, REDUCTIONS, _Elementwise, _Loss, weights
from hookcheck.topology.primitive import Array, Arrays, Gradients, Layer, Operand, Shape


def _log(x: Array) -> Array:
    """The logarithm, cut at −100."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(x), -100)


@dataclass(frozen=True)
class BCELoss(_Elementwise):
    """``nn.BCELoss``: ``−w (y ln x + (1 − y) ln(1 − x))`` of ``x`` and ``y`` between 0 and 1, ``w`` broadcast.

    ``∂x = w (x − y) / (x (1 − x))`` and ``∂y = w (ln(1 − x) − ln x)``. Logarithms are cut at −100, and ``x (1 − x)`` is
    no less than 1e−12 (which torch keeps in float32), so that a probability of 0 or 1 has a gradient too. Source: the
    documentation of ``torch.nn.BCELoss``.
    """

    constant = (1,)  # the target: the releases before 1.10 have no derivative for it

    weight: tuple[float, ...] | None = None
    reduction: str = "mean"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Two tensors between 0 and 1; a weight for each place of the last axis."""
        weight = draw(weights(shape[-1])) if shape else None
        return cls(weight, draw(REDUCTIONS)), (Operand(shape, "unit"), Operand(shape, "unit"))

    def value(self, x: Array, y: Array, weight: Array | float = 1.0) -> Array:
        """The cross entropy of two coins."""
        return -(y * _log(x) + (1 - y) * _log(1 - x)) * weight

    def slopes(self, x: Array, y: Array) -> Arrays:
        """``∂x`` and ``∂y``, unweighted."""
        return (x - y) / np.maximum(x * (1 - x), EPSILON), _log(1 - x) - _log(x)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """One Node, since 1.10 with a place for the target."""
        return ((step.of(0),),) if step.release < (1, 10) else (step.each,)


@dataclass(frozen=True)
class BCEWithLogitsLoss(_Loss):
    """``nn.BCEWithLogitsLoss``: ``w (p y ln(1 + e⁻ˣ) + (1 − y) ln(1 + eˣ))``, weights ``w`` and ``p`` broadcast.

    ``∂x = w ((1 − y) σ(x) − p y σ(−x))`` and ``∂y = w (p ln(1 + e⁻ˣ) − ln(1 + eˣ))``.
    Source: the documentation of ``torch.nn.BCEWithLogitsLoss``.
    """

    weight: tuple[float, ...] | None = None
    reduction: str = "mean"
    pos_weight: tuple[float, ...] | None = None

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A target between 0 and 1; weights for each place of the last axis."""
        drawn = weights(shape[-1]) if shape else st.none()
        return cls(draw(drawn), draw(REDUCTIONS), draw(drawn)), (Operand(shape), Operand(shape, "unit"))

    def value(self, x: Array, y: Array, weight: Array | float = 1.0, pos_weight: Array | float = 1.0) -> Array:
        """The cross entropy of two coins, the first given by its logit."""
        return weight * (pos_weight * y * np.logaddexp(0, -x) + (1 - y) * np.logaddexp(0, x))

    def pull(
        self, v: Array, x: Array, y: Array, weight: Array | float = 1.0, pos_weight: Array | float = 1.0
    ) -> Gradients:
        """``v ∂x`` and ``v ∂y``."""
        of_x = (1 - y) / (1 + np.exp(-x)) - pos_weight * y / (1 + np.exp(x))
        of_y = pos_weight * np.logaddexp(0, -x) - np.logaddexp(0, x)
        return v * weight * of_x, v * weight * of_y

    def fused(self, step: Step) -> bool:
        """One Node."""
        return True
