"""Triplet losses: a positive example is to be closer to the anchor than a negative one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.distance import PairwiseDistance
from hookcheck.topology.layers.loss import REDUCTIONS, BatchedLoss, _Loss
from hookcheck.topology.layers.unary import sgn
from hookcheck.topology.model import Apply, Call, Composite, Module, Statement
from hookcheck.topology.ops.arithmetic import Minimum, Sub
from hookcheck.topology.ops.elementwise import Clamp, Shift
from hookcheck.topology.ops.reduction import Mean, Sum
from hookcheck.topology.ops.rule import like
from hookcheck.topology.primitive import Array, Arrays, Assembled, Gradients, Layer, Operand, Shape
from hookcheck.topology.tree import Ref

EPS = 1e-6
"""What the default distance adds to each difference (documentation of ``torch.nn.PairwiseDistance``)."""


class _Triplet(_Loss):
    """``max(0, margin + d(a, p) − d(a, n))`` of ``a``, ``p``, ``n`` (N, D), ``d(x, y) = (Σ |x − y + eps|ᵖ)^{1/p}``.

    With ``swap``, ``min(d(a, n), d(p, n))`` stands for ``d(a, n)``. With ``e = x − y + eps``, ``∂d/∂x`` is
    ``sgn(e) (|e| / d)ᵖ⁻¹`` and ``∂d/∂y`` its negative; where the two of the minimum are equal, each has half.
    Of complex numbers the distances are real, and so is the loss.
    """

    keywords = ("anchor", "positive", "negative")
    complex_since = PairwiseDistance.complex_since  # tested like the distance
    margin: float
    p: float
    eps: float
    swap: bool

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, D)."""
        return len(shape) == 2 and all(shape)

    def extent(self, inputs: Arrays) -> Shape:
        """(N,)."""
        return (len(inputs[0]),)

    def value(self, a: Array, p: Array, n: Array) -> Array:
        """What the negative example lacks of being farther off by the margin."""
        return np.maximum(self._lacking(a, p, n), 0)

    def _lacking(self, a: Array, p: Array, n: Array) -> Array:
        far = self.distance(a, n)
        lacking: Array = (
            self.margin + self.distance(a, p) - (np.minimum(far, self.distance(p, n)) if self.swap else far)
        )
        return lacking

    def distance(self, x: Array, y: Array) -> Array:
        """``d(x, y)`` (N,)."""
        return (np.abs(x - y + self.eps) ** self.p).sum(1) ** (1 / self.p)

    def slope(self, x: Array, y: Array) -> Array:
        """``∂d/∂x`` (N, D)."""
        e = x - y + self.eps
        return sgn(e) * (np.abs(e) / self.distance(x, y)[:, None]) ** (self.p - 1)

    def pull(self, v: Array, a: Array, p: Array, n: Array) -> Gradients:
        """The slopes of the distances, where the loss is not 0."""
        violating = (v * (self._lacking(a, p, n) > 0))[:, None]
        swaps = self._swaps(a, p, n)[:, None]
        near = violating * self.slope(a, p)
        far, swapped = violating * (1 - swaps) * self.slope(a, n), violating * swaps * self.slope(p, n)
        return like(near - far, a), like(-near - swapped, p), like(far + swapped, n)

    def _swaps(self, a: Array, p: Array, n: Array) -> Array:
        """The share that ``d(p, n)`` has in the minimum: 1, 0 or a half."""
        share: Array = (1 + np.sign(self.distance(a, n) - self.distance(p, n))) / 2
        return share * self.swap


def _operands(shape: Shape) -> tuple[Operand, ...]:
    """Anchor, positive and negative on three grids, so that no two of them share a number: no distance has a kink."""
    return Operand(shape), Operand(shape, "unit"), Operand(shape, "sign")


def _margins(shape: Shape, norm: float = 2.0) -> st.SearchStrategy[float]:
    """Margins that no difference of distances is: sums of numbers on a grid need one off the grid."""
    return st.sampled_from([*([1.0, 0.5] if shape[1] > 1 and norm > 1 else []), 1.00390625, 0.50390625, 3.00390625])


@dataclass(frozen=True)
class TripletMarginLoss(BatchedLoss, _Triplet):
    """``nn.TripletMarginLoss``: the triplet loss of `_Triplet`, with the exponent ``p`` and ``eps`` as settings.

    Source: the documentation of ``torch.nn.TripletMarginLoss``.
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = EPS
    swap: bool = False
    reduction: str = "mean"
    unbatched: bool = False

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Distances that the minimum can tell apart: no sums of absolute differences where it is taken."""
        swap = draw(st.booleans())
        p = draw(st.sampled_from([2.0, 3.0, *([] if swap else [1.0])]))
        eps = draw(st.sampled_from([EPS, 1 / 256]))
        return cls(draw(_margins(shape, p)), p, eps, swap, draw(REDUCTIONS)), _operands(shape)

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """What is lacking, cut off at 0."""
        inputs = self.batched(step.inputs, (0, 0, 0))
        return step.alone(step.v * (self._lacking(*inputs) > 0).reshape(step.v.shape))


@dataclass(frozen=True)
class TripletMarginWithDistanceLoss(Assembled):
    """``nn.TripletMarginWithDistanceLoss``: the triplet loss of `_Triplet`, with the default distance, which is a
    module of its own: hooks see its calls.

    Source: the documentation of ``torch.nn.TripletMarginWithDistanceLoss``.
    """

    complex_since = PairwiseDistance.complex_since

    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, D)."""
        return _Triplet.takes(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """With and without swap."""
        return cls(draw(_margins(shape)), draw(st.booleans()), draw(REDUCTIONS)), _operands(shape)

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)

    def gives(self, operands: tuple[Operand, ...]) -> Shape:
        """(N,), or () where it is reduced."""
        return operands[0].shape[:1] if self.reduction == "none" else ()

    def assembled(self) -> Module:
        """Two distances, or three, and what the negative example lacks of being farther off by the margin."""
        pairs = [("anchor", "positive"), ("anchor", "negative"), *([("positive", "negative")] if self.swap else [])]
        near, far, *swapped = (f"d{i}" for i in range(len(pairs)))
        body: list[Statement] = [
            Call(f"d{i}", "distance_function", tuple(map(Ref, pair))) for i, pair in enumerate(pairs)
        ]
        if swapped:
            body.append(Apply("nearest", Minimum(), (Ref(far), Ref(swapped[0]))))
            far = "nearest"
        body += [
            Apply("differences", Sub(), (Ref(near), Ref(far))),
            Apply("lacking", Shift(self.margin), (Ref("differences"),)),
            Apply("losses", Clamp(0.0, None), (Ref("lacking"),)),
        ]
        if self.reduction != "none":
            body.append(Apply("loss", Mean() if self.reduction == "mean" else Sum(), (Ref("losses"),)))
        takes = ("anchor", "positive", "negative")
        gives = Ref("losses" if self.reduction == "none" else "loss")
        return Composite((("distance_function", PairwiseDistance()),), takes, tuple(body), gives)
