"""Losses of a classification: ``L = −Σ_c q_c s_c`` over the classes, of scores ``s`` and the weight ``q`` of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.loss import REDUCTIONS, BatchedLoss, _Loss, weights
from hookcheck.topology.primitive import Array, Arrays, Gradients, Layer, Operand, Shape


class _Classification(_Loss):
    """``x`` (N, C, d...) and ``y``, class indices (N, d...) or probabilities (N, C, d...), to losses (N, d...).

    ``L = −Σ_c q_c s_c`` with ``s`` the scores of ``x``, and with ``t`` the probabilities, or 1 at the class and else 0,
    ``q_c = w_c ((1 − ε) t_c + ε / C)``; ``w`` are the classes' weights, ``ε`` is ``label_smoothing``, and ``q = 0``
    where the index is ``ignore_index``. The mean divides by the sum of ``w_y`` over indices not ignored, or by the
    number of losses for probabilities. ``∂s = −q`` and for probabilities ``∂y_c = −w_c (1 − ε) s_c``.
    """

    weight: tuple[float, ...] | None
    ignore_index: int | None
    label_smoothing: float = 0.0

    def scores(self, x: Array) -> Array:
        """``s``."""
        return x

    def of_scores(self, x: Array, ds: Array) -> Array:
        """``dx`` of the cotangent of ``s``."""
        return ds

    def extent(self, inputs: Arrays) -> Shape:
        """(N, d...)."""
        y = inputs[1]
        return (*y.shape[: _axis(y)], *y.shape[_axis(y) + 1 :]) if y.dtype.kind == "f" else y.shape

    def count(self, inputs: Arrays, parameters: dict[str, Array]) -> float:
        """The sum of weights, or the number of losses for probabilities."""
        y = inputs[1]
        if y.dtype.kind == "f":
            return super().count(inputs, parameters)
        counted = y[y != self.ignore_index]
        return float(counted.size if self.weight is None else parameters["weight"][counted].sum())

    def value(self, x: Array, y: Array, *, weight: Array | None = None) -> Array:
        """``−Σ_c q_c s_c``."""
        return -(self._shares(x, y, weight) * self.scores(x)).sum(_axis(x))

    def pull(self, v: Array, x: Array, y: Array, *, weight: Array | None = None) -> Gradients:
        """``dx``; ``dy`` for probabilities, None for indices."""
        v = np.expand_dims(v, _axis(x))
        dx = self.of_scores(x, -self._shares(x, y, weight) * v)
        if y.dtype.kind != "f":
            return dx, None
        return dx, -v * _aligned(weight, x) * (1 - self.label_smoothing) * self.scores(x)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Of the scores (N, C), (N, C, H, W) or else in that form; unreduced, those are seen in their shape again."""
        x, y = self.scored(step)
        if self.reduction == "none" and x.ndim not in (1, 2, 4):
            return step.view(step.v.reshape(len(x), 1, -1))
        each = np.broadcast_to(step.v / self._divisor((x, y), step.parameters), self.extent((x, y)))
        ds = -self._shares(x, y, step.parameters.get("weight")) * np.expand_dims(each, _axis(x))
        return step.alone(ds if x.ndim in (1, 2, 4) else ds.reshape(*x.shape[:2], 1, -1))

    def scored(self, step: Step) -> tuple[Array, Array]:
        """What the scores are of, and the target."""
        x, y = step.inputs
        return x, y

    def _shares(self, x: Array, y: Array, weight: Array | None) -> Array:
        """``q``, of ``x``'s shape."""
        smooth = self.label_smoothing
        t = y if y.dtype.kind == "f" else self._class(x, y)
        q: Array = _aligned(weight, x) * ((1 - smooth) * t + smooth / x.shape[_axis(x)])
        return q if y.dtype.kind == "f" else q * np.expand_dims(y != self.ignore_index, _axis(x))

    def _class(self, x: Array, y: Array) -> Array:
        """1 at each index that is not ignored, of ``x``'s shape."""
        chosen = np.where(y == self.ignore_index, -1, y)
        classes = np.arange(x.shape[_axis(x)]).reshape(-1, *[1] * (x.ndim - _axis(x) - 1))
        return (np.expand_dims(chosen, _axis(x)) == classes).astype(x.dtype)


class _CrossEntropy(_Classification):
    """``s = ln softmax(x)`` over the classes: ``dx = ds − softmax(x) Σ_c ds_c``."""

    probabilities: bool
    usage: ClassVar[tuple[str, ...]] = ("probabilities",)

    def scores(self, x: Array) -> Array:
        """``ln softmax(x)``."""
        shifted = x - x.max(_axis(x), keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(_axis(x), keepdims=True))

    def of_scores(self, x: Array, ds: Array) -> Array:
        """``ds − softmax(x) Σ_c ds_c``."""
        return ds - np.exp(self.scores(x)) * ds.sum(_axis(x), keepdims=True)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Of probabilities the negative of the sum, or its quotient; with smoothing the addition of two losses; else as
        for scores."""
        if not self.probabilities:
            return ((step.inner(step.v), step.inner(step.v)),) if self.label_smoothing else super().last_node(step)
        if self.reduction != "mean":
            return step.alone(-step.v)
        return step.alone(step.v / self._divisor(self.scored(step), step.parameters))


def _aligned(weight: Array | None, x: Array) -> Array | float:
    """``w``, to be broadcast against ``x``."""
    return 1.0 if weight is None else weight.reshape(-1, *[1] * (x.ndim - _axis(x) - 1))


def _axis(x: Array) -> int:
    """The axis of the classes: the second, or the only one of a single sample."""
    return min(x.ndim - 1, 1)


def _indices(draw: st.DrawFn, shape: Shape, classes: int, reduction: str) -> tuple[Operand, int | None]:
    """Class indices of ``shape``, and one to ignore or None.

    A mean over nothing is no number, so an index is ignored in a mean only if the indices of a row are all different.
    """
    columns = int(np.prod(shape[2:], dtype=int))
    distinct = len(shape) > 2 and 1 < columns <= classes
    ignored = draw(st.none() | st.integers(0, classes - 1)) if distinct or reduction != "mean" else None
    domain = "distinct" if ignored is not None and reduction == "mean" else "index"
    return Operand(shape, domain, classes), ignored


@dataclass(frozen=True)
class NLLLoss(BatchedLoss, _Classification):
    """``nn.NLLLoss``: `_Classification` of ``x`` (N, C, d...), which are scores already, and indices ``y`` (N, d...).

    ``L = −w_y x_y``. Source: the documentation of ``torch.nn.NLLLoss``.
    """

    weight: tuple[float, ...] | None = None
    ignore_index: int = -100
    reduction: str = "mean"
    unbatched: bool = False

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, C, d...)."""
        return len(shape) > 1 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """An index for each sample and place."""
        reduction, weight = draw(REDUCTIONS), draw(weights(shape[1]))
        target, ignored = _indices(draw, (shape[0], *shape[2:]), shape[1], reduction)
        return cls(weight, -100 if ignored is None else ignored, reduction), (Operand(shape), target)


@dataclass(frozen=True)
class NLLLoss2d(NLLLoss):
    """``nn.NLLLoss2d``: the old name of ``nn.NLLLoss`` for images."""

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, H, W)."""
        return len(shape) == 4 and all(shape)


@dataclass(frozen=True)
class CrossEntropyLoss(BatchedLoss, _CrossEntropy):
    """``nn.CrossEntropyLoss``: `_Classification` of logits ``x`` (N, C, d...), whose scores are ``ln softmax(x)``.

    ``y`` holds indices (N, d...) or probabilities (N, C, d...). Source: the documentation of ``nn.CrossEntropyLoss``.
    """

    weight: tuple[float, ...] | None = None
    ignore_index: int = -100
    reduction: str = "mean"
    label_smoothing: float = 0.0
    probabilities: bool = False
    unbatched: bool = False

    @property
    def since(self) -> str:
        """Probabilities and label smoothing are new in 1.10."""
        return "1.10" if self.probabilities or self.label_smoothing else "1.7"

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, C, d...)."""
        return len(shape) > 1 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """An index for each sample and place, or a probability for each class besides."""
        reduction, weight = draw(REDUCTIONS), draw(weights(shape[1]))
        smoothing, probabilities = draw(st.sampled_from([0.0, 0.25, 1.0])), draw(st.booleans())
        target, ignored = _indices(draw, (shape[0], *shape[2:]), shape[1], reduction)
        if probabilities:
            target, ignored = Operand(shape, "unit"), None
        layer = cls(weight, -100 if ignored is None else ignored, reduction, smoothing, probabilities)
        return layer, (Operand(shape), target)


@dataclass(frozen=True)
class LinearCrossEntropyLoss(_CrossEntropy):
    """``nn.LinearCrossEntropyLoss``: cross entropy of ``z = x Wᵀ + b``, of ``x`` (N, in_features) or (in_features,).

    ``z`` is (N, C, d...), or (C,) for a single sample, with C = ``num_classes`` and d = ``out_features``. Its cotangent
    ``g`` is that of the loss's logits; ``dx = g W``, ``dW = Σ gᵀ x``, ``db = Σ g``.
    Source: the documentation of ``torch.nn.LinearCrossEntropyLoss``.
    """

    since = "2.13"

    in_features: int
    num_classes: int
    out_features: Shape = ()
    bias: bool = False
    reduction: str = "mean"
    weight: tuple[float, ...] | None = None
    ignore_index: int | None = None
    label_smoothing: float = 0.0
    probabilities: bool = False

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, in_features) or (in_features,)."""
        return len(shape) in (1, 2) and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """An index for each sample and place, or a probability for each class besides."""
        batch, classes, bias = shape[:-1], draw(st.integers(1, 4)), draw(st.booleans())
        places = draw(st.lists(st.integers(1, 2), max_size=2).map(tuple)) if batch else ()
        reduction, weight = draw(REDUCTIONS), draw(weights(classes))
        smoothing, probabilities = draw(st.sampled_from([0.0, 0.25, 1.0])), draw(st.booleans())
        target, ignored = _indices(draw, (*batch, *places), classes, reduction)
        if probabilities:
            target, ignored = Operand((*batch, classes, *places), "unit"), None
        layer = cls(shape[-1], classes, places, bias, reduction, weight, ignored, smoothing, probabilities)
        return layer, (Operand(shape), target)

    def parameters(self) -> dict[str, Shape]:
        """``linear.weight`` (C · d, in_features) and, if there is one, ``linear.bias`` (C · d,)."""
        rows = self.num_classes * int(np.prod(self.out_features, dtype=int))
        weight: dict[str, Shape] = {"linear.weight": (rows, self.in_features)}
        return {**weight, "linear.bias": (rows,)} if self.bias else weight

    def value(self, x: Array, y: Array, **parameters: Any) -> Array:
        """The cross entropy of the logits."""
        return super().value(self._logits(x, parameters), y, weight=parameters.get("weight"))

    def pull(self, v: Array, x: Array, y: Array, **parameters: Any) -> Gradients:
        """``dx``, ``dy``, ``dW`` and ``db``."""
        g, dy = super().pull(v, self._logits(x, parameters), y, weight=parameters.get("weight"))
        w = parameters["linear.weight"]
        rows = g.reshape(-1, len(w))
        gradients = {"linear.weight": rows.T @ x.reshape(-1, self.in_features)}
        if self.bias:
            gradients["linear.bias"] = rows.sum(0)
        return (rows @ w).reshape(x.shape), dy, gradients

    def scored(self, step: Step) -> tuple[Array, Array]:
        """The logits, and the target."""
        x, y = step.inputs
        return self._logits(x, step.parameters), y

    def _logits(self, x: Array, parameters: dict[str, Array]) -> Array:
        """``z`` (N, C, d...)."""
        z = x @ parameters["linear.weight"].T + parameters.get("linear.bias", 0.0)
        return z.reshape(*x.shape[:-1], self.num_classes, *self.out_features)
