"""Losses with a margin: nothing is lost where one number is far enough from another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.loss import EPSILON, REDUCTIONS, BatchedLoss, _Elementwise, _Loss, weights
from hookcheck.topology.layers.unary import sigmoid
from hookcheck.topology.primitive import Array, Arrays, Gradients, Layer, Operand, Shape


@dataclass(frozen=True)
class SoftMarginLoss(_Elementwise):
    """``nn.SoftMarginLoss``: ``ln(1 + z)`` with ``z = exp(−y x)``, ``y`` ±1; ``∂x = −y z / (1 + z)``,
    ``∂y = −x z / (1 + z)``.

    Source: the documentation of ``torch.nn.SoftMarginLoss``. Torch works it out just so: where ``z`` is too large for a
    number, the loss is infinite and the slope, that of infinity over infinity, NaN.
    """

    constant = (1,)  # the target: torch has no derivative for it

    reduction: str = "mean"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A target of signs."""
        return cls(draw(REDUCTIONS)), (Operand(shape), Operand(shape, "sign"))

    def value(self, x: Array, y: Array) -> Array:
        """``ln(1 + exp(−y x))``."""
        return np.log1p(np.exp(-y * x))

    def slopes(self, x: Array, y: Array) -> Arrays:
        """``∂x`` and ``∂y``."""
        z = np.exp(-y * x)
        falling = -z / (1 + z)
        return y * falling, x * falling

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """One Node, of the input."""
        return ((step.of(0),),)


@dataclass(frozen=True)
class HingeEmbeddingLoss(_Elementwise):
    """``nn.HingeEmbeddingLoss``: ``x`` where ``y`` is 1, ``max(0, margin − x)`` where it is −1.

    ``∂x`` is 1, or −1 where ``x < margin`` and else 0; ``y`` only chooses, so ``∂y = 0``.
    Source: the documentation of ``torch.nn.HingeEmbeddingLoss``.
    """

    constant = (1,)  # the target: autograd does not lead to it

    margin: float = 1.0
    reduction: str = "mean"
    scalable: ClassVar[bool] = False

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A target of signs; a margin that is no number of the input, and below 0, which flat parts give: what follows
        on a margin above 0 can meet it, and at that kink releases differ."""
        margin = draw(st.sampled_from([-0.5, -0.25, -1.0, -2.0]))
        return cls(margin, draw(REDUCTIONS)), (Operand(shape), Operand(shape, "sign"))

    def value(self, x: Array, y: Array) -> Array:
        """``x``, or what it lacks of the margin."""
        return np.where(y > 0, x, np.maximum(self.margin - x, 0))

    def slopes(self, x: Array, y: Array) -> Arrays:
        """``∂x`` and ``∂y``."""
        return np.where(y > 0, 1.0, -(x < self.margin).astype(x.dtype)), np.zeros_like(y)

    def disputed(self, *operands: Array) -> bool:
        """Where a number is the margin, at which torch clamps."""
        x, y = operands
        return bool(((x == self.margin) & (y < 0)).any())

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """The two cases added up."""
        return ((step.inner(step.v, 0), step.inner(step.v, 0)),)


@dataclass(frozen=True)
class MarginRankingLoss(_Elementwise):
    """``nn.MarginRankingLoss``: ``max(0, m)`` with ``m = margin − y (a − b)`` and ``y`` ±1.

    Where ``m > 0``: ``∂a = −y``, ``∂b = y``, ``∂y = b − a``. Source: the documentation of ``nn.MarginRankingLoss``.
    """

    keywords = ("input1", "input2", "target")
    margin: float = 0.0
    reduction: str = "mean"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N,)."""
        return len(shape) == 1 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """``b`` on a finer grid than ``a``, so that no difference is the margin."""
        margin = draw(st.sampled_from([0.0, 0.5, 1.0, -0.25]))
        operands = (Operand(shape), Operand(shape, "unit"), Operand(shape, "sign"))
        return cls(margin, draw(REDUCTIONS)), operands

    def value(self, a: Array, b: Array, y: Array) -> Array:
        """What the difference lacks of the margin."""
        return np.maximum(self.margin - y * (a - b), 0)

    def slopes(self, a: Array, b: Array, y: Array) -> Arrays:
        """``∂a``, ``∂b`` and ``∂y``."""
        lacking = self.margin - y * (a - b) > 0
        return -y * lacking, y * lacking, (b - a) * lacking

    def disputed(self, *operands: Array) -> bool:
        """Where a difference is the margin, at which torch clamps."""
        a, b, y = operands
        return bool((y * (a - b) == self.margin).any())

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """What is lacking, cut off at 0."""
        a, b, y = step.inputs
        return step.alone(step.v * (self.margin - y * (a - b) > 0))


@dataclass(frozen=True)
class MultiLabelSoftMarginLoss(BatchedLoss, _Loss):
    """``nn.MultiLabelSoftMarginLoss``: for each of ``x`` (N, C), ``Σ w (y ln(1 + e⁻ˣ) + (1 − y) ln(1 + eˣ)) / C``.

    ``∂x = w (σ(x) − y) / C`` and ``∂y = −w x / C``, by ``ln(1 + eˣ) = ln(1 + e⁻ˣ) + x``.
    Source: the documentation of ``torch.nn.MultiLabelSoftMarginLoss``.
    """

    weight: tuple[float, ...] | None = None
    reduction: str = "mean"
    unbatched: bool = False

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, C)."""
        return len(shape) == 2 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A target between 0 and 1; a weight for each class."""
        return cls(draw(weights(shape[1])), draw(REDUCTIONS)), (Operand(shape), Operand(shape, "unit"))

    def extent(self, inputs: Arrays) -> Shape:
        """(N,)."""
        return (len(inputs[0]),)

    def value(self, x: Array, y: Array, weight: Array | float = 1.0) -> Array:
        """The mean of a sample's cross entropies."""
        return ((np.logaddexp(0, x) - y * x) * weight).mean(1)

    def pull(self, v: Array, x: Array, y: Array, weight: Array | float = 1.0) -> Gradients:
        """``v ∂x`` and ``v ∂y``."""
        share = v[:, None] * weight / x.shape[1]
        return share * (sigmoid(x) - y), -share * x

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """The quotient of the sum and the number of classes."""
        return ((step.inner(step.v / step.inputs[0].shape[-1]), None),)


@dataclass(frozen=True)
class MultiMarginLoss(BatchedLoss, _Loss):
    """``nn.MultiMarginLoss``: for each of ``x`` (N, C) with class ``y``, ``Σ_{i ≠ y} w_y max(0, m_i)ᵖ / C``.

    ``m_i = margin − x_y + x_i``, ``p`` is 1 or 2. ``∂x_i = w_y p max(0, m_i)ᵖ⁻¹ / C`` where ``m_i > 0``, and ``∂x_y``
    is minus their sum. Source: the documentation of ``torch.nn.MultiMarginLoss``.
    """

    sample_since = "1.8"
    p: int = 1
    margin: float = 1.0
    weight: tuple[float, ...] | None = None
    reduction: str = "mean"
    unbatched: bool = False

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, C)."""
        return len(shape) == 2 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A margin that no difference is: above 1 for numbers between 0 and 1, else off the grid of differences."""
        domain, margins = draw(st.sampled_from([("real", [0.53125, 1.03125, 2.03125]), ("unit", [1.0, 1.5])]))
        layer = cls(draw(st.integers(1, 2)), draw(st.sampled_from(margins)), draw(weights(shape[1])), draw(REDUCTIONS))
        return layer, (Operand(shape, domain), Operand(shape[:1], "index", shape[1]))

    def extent(self, inputs: Arrays) -> Shape:
        """(N,)."""
        return (len(inputs[0]),)

    def value(self, x: Array, y: Array, weight: Array | None = None) -> Array:
        """The mean over all classes of what ``x_y`` lacks of being ahead by the margin."""
        return (_of_class(weight, y) * self._lacking(x, y) ** self.p).mean(1)

    def pull(self, v: Array, x: Array, y: Array, weight: Array | None = None) -> Gradients:
        """``v ∂x``, and None for the classes."""
        lacking = self._lacking(x, y)
        slope = _of_class(weight, y) * ((lacking > 0) * lacking ** (self.p - 1)) * self.p / x.shape[1]
        slope[np.arange(len(x)), y] = -slope.sum(1)
        return v[:, None] * slope, None

    def _lacking(self, x: Array, y: Array) -> Array:
        """``max(0, m)``, with 0 at ``y``."""
        rows = np.arange(len(x))
        lacking = np.maximum(self.margin - x[rows, y][:, None] + x, 0)
        lacking[rows, y] = 0
        return lacking

    def fused(self, step: Step) -> bool:
        """One Node."""
        return True


def _of_class(weight: Array | None, y: Array) -> Array | float:
    """``w_y`` (N, 1)."""
    return 1.0 if weight is None else weight[y][:, None]


@dataclass(frozen=True)
class MultiLabelMarginLoss(BatchedLoss, _Loss):
    """``nn.MultiLabelMarginLoss``: for each of ``x`` (N, C) with labels ``y`` (N, C), ``Σ_{ij} max(0, m_ij) / C``.

    ``m_ij = 1 − x_{y_j} + x_i``, ``j`` over the labels before the first −1, ``i`` over the classes that are no label. A
    term with ``m_ij > 0`` adds 1 / C to ``∂x_i`` and takes it from ``∂x_{y_j}``.
    Source: the documentation of ``torch.nn.MultiLabelMarginLoss``.
    """

    reduction: str = "mean"
    unbatched: bool = False

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, C)."""
        return len(shape) == 2 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Numbers between 0 and 1, whose differences are not the margin; up to C labels, some of them repeated."""
        labels = Operand(shape, draw(st.sampled_from(["index", "ended"])), shape[1])
        return cls(draw(REDUCTIONS)), (Operand(shape, "unit"), labels)

    def extent(self, inputs: Arrays) -> Shape:
        """(N,)."""
        return (len(inputs[0]),)

    def value(self, x: Array, y: Array) -> Array:
        """What labels lack of being ahead of other classes by 1, over C."""
        m, counted = self._parts(x, y)
        return (m * counted).sum((1, 2)) / x.shape[1]

    def pull(self, v: Array, x: Array, y: Array) -> Gradients:
        """``v ∂x``, and None for the labels."""
        terms = self._parts(x, y)[1] * v[:, None, None] / x.shape[1]
        dx: Array = terms.sum(2)
        np.add.at(dx, (np.arange(len(x))[:, None], y), -terms.sum(1))
        return dx, None

    def _parts(self, x: Array, y: Array) -> tuple[Array, Array]:
        """``m`` (N, C, C) and which of it counts; a −1, as an index, reads a number that does not count."""
        m = 1 - np.take_along_axis(x, y, 1)[:, None, :] + x[:, :, None]
        label = (y >= 0).cumprod(1).astype(bool)
        named = (label[:, None, :] & (y[:, None, :] == np.arange(x.shape[1])[:, None])).any(2)
        return m, label[:, None, :] & ~named[:, :, None] & (m > 0)

    def fused(self, step: Step) -> bool:
        """One Node."""
        return True


@dataclass(frozen=True)
class CosineEmbeddingLoss(BatchedLoss, _Loss):
    """``nn.CosineEmbeddingLoss``: of ``a``, ``b`` (N, D), ``1 − c`` where ``y`` is 1, ``max(0, c − margin)`` where −1.

    ``c = a·b / √(A B)`` with ``A = a·a + 10⁻¹²`` and ``B`` likewise, which keeps torch from dividing by 0.
    ``∂c/∂a = b / √(A B) − c a / A``, and likewise for ``b``; ``y`` only chooses, so ``∂y = 0``.
    Source: the documentation of ``torch.nn.CosineEmbeddingLoss``.
    """

    keywords = ("input1", "input2", "target")
    constant = (2,)  # the target: autograd does not lead to it
    margin: float = 0.0
    reduction: str = "mean"
    unbatched: bool = False
    scalable: ClassVar[bool] = False

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, D)."""
        return len(shape) == 2 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A margin other than 0, which is the cosine of a vector of zeros: at that kink releases differ."""
        margin = draw(st.sampled_from([0.25, 0.5, -0.25]))
        return cls(margin, draw(REDUCTIONS)), (Operand(shape), Operand(shape), Operand(shape[:1], "sign"))

    def extent(self, inputs: Arrays) -> Shape:
        """(N,)."""
        return (len(inputs[0]),)

    def value(self, a: Array, b: Array, y: Array) -> Array:
        """How far apart like pairs are, and how close unlike ones."""
        c = self._cosine(a, b)[0][:, 0]
        return np.where(y > 0, 1 - c, np.maximum(c - self.margin, 0))

    def pull(self, v: Array, a: Array, b: Array, y: Array) -> Gradients:
        """``v ∂a``, ``v ∂b`` and zeros."""
        c, a_square, b_square = self._cosine(a, b)
        of_c = v[:, None] * np.where(y[:, None] > 0, -1.0, (c > self.margin).astype(c.dtype))
        root = np.sqrt(a_square * b_square)
        return of_c * (b / root - c * a / a_square), of_c * (a / root - c * b / b_square), np.zeros_like(y)

    def _cosine(self, a: Array, b: Array) -> tuple[Array, Array, Array]:
        """``c``, ``A`` and ``B``, each (N, 1)."""
        a_square, b_square = ((x * x).sum(1, keepdims=True) + EPSILON for x in (a, b))
        return (a * b).sum(1, keepdims=True) / np.sqrt(a_square * b_square), a_square, b_square

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """The two cases added up."""
        return ((step.inner(step.v, 0, 1), step.inner(step.v, 0, 1)),)
