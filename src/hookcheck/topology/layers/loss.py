"""What have all losses in common? How a criterion is constructed, and how its losses become one number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.batched import Axis, Batched
from hookcheck.topology.primitive import Array, Arrays, Gradients, Shape, SingleStep

REDUCTIONS = st.sampled_from(["mean", "none", "sum"])
"""The reductions that every loss has."""

TENSORS = ("weight", "pos_weight")
"""The settings that are tensors: tuples of numbers here, buffers of the module in torch."""

EPSILON = float(np.float32(1e-12))
"""What keeps quotients of losses finite: 1e-12, which torch keeps in float32 whatever the dtype."""


class _Loss(SingleStep):
    """A criterion: losses ``L``, one for each element or sample, reduced to ``L``, ``Σ L`` or ``Σ L / count``.

    With cotangent ``v`` of the reduced loss, that of each of ``L`` is ``v``, ``v`` or ``v / count``. `value` and `pull`
    are about ``L``, before it is reduced.
    """

    reduction: str
    keywords: ClassVar[tuple[str, ...]] = ("input", "target")
    usage: ClassVar[tuple[str, ...]] = ()
    """The fields that are settings of a call, not of the constructor."""

    def source(self) -> str:
        """The constructor call, settings at their default left out."""
        settings: tuple[Any, ...] = fields(self)  # type: ignore[arg-type]  # every subclass is a dataclass
        shown = [
            f"{f.name}={self._setting(f.name)}"
            for f in settings
            if f.name not in ("unbatched", *self.usage) and getattr(self, f.name) != f.default
        ]
        return f"nn.{type(self).__name__}({', '.join(shown)})"

    def _setting(self, name: str) -> str:
        value = getattr(self, name)
        return f"torch.tensor({list(value)})" if name in TENSORS else repr(value)

    def buffers(self) -> dict[str, Array]:
        """The settings that are tensors."""
        return {name: np.array(getattr(self, name)) for name in TENSORS if getattr(self, name, None) is not None}

    def forward(self, inputs: Arrays, parameters: dict[str, Array]) -> Arrays:
        """The losses, or a 0-dim array of their sum or mean."""
        (losses,) = super().forward(inputs, parameters)
        if self.reduction == "none":
            return (losses,)
        return (np.asarray(losses.sum() / self._divisor(inputs, parameters)),)

    def vjp(
        self, inputs: Arrays, parameters: dict[str, Array], cotangents: Arrays
    ) -> tuple[tuple[Array | None, ...], dict[str, Array]]:
        """The cotangent spread over the losses, and pulled back from there."""
        each = np.broadcast_to(cotangents[0] / self._divisor(inputs, parameters), self.extent(inputs))
        return super().vjp(inputs, parameters, (each,))

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """The Node of the losses, or of their sum or mean; where one Node does all, that of the operands."""
        if self.fused(step):
            return super().last_node(step)
        return self.of_losses(step) if self.reduction == "none" else self.reduced(step)

    def reduced(self, step: Step) -> tuple[Form, ...]:
        """What the Node of a sum or mean hands on: a share of the cotangent for each loss."""
        share = step.v / self._divisor(step.inputs, step.parameters)
        return step.alone(np.broadcast_to(share, self.extent(step.inputs)))

    def fused(self, step: Step) -> bool:
        """Whether torch has one Node for the whole loss, with its reduction."""
        return False

    def of_losses(self, step: Step) -> tuple[Form, ...]:
        """What the last Node of the unreduced losses hands on."""
        return super().last_node(step)

    def _divisor(self, inputs: Arrays, parameters: dict[str, Array]) -> float:
        return self.count(inputs, parameters) if self.reduction == "mean" else 1.0

    def count(self, inputs: Arrays, parameters: dict[str, Array]) -> float:
        """What the sum is divided by for the mean: the number of losses."""
        return float(np.prod(self.extent(inputs), dtype=int))

    def extent(self, inputs: Arrays) -> Shape:
        """The shape of the losses: that of the first input."""
        return inputs[0].shape


class _Elementwise(_Loss):
    """One loss for each element: ``L = w f(x, y, ...)``, ``dx = v w · ∂f/∂x``; most have no weights ``w``.

    ``slopes(x, y, ...)`` are ``∂f/∂x``, ``∂f/∂y``, ...
    """

    slopes: Callable[..., Arrays]

    def pull(self, v: Array, *inputs: Any, **weights: Any) -> Gradients:
        """``v`` times each slope, summed over what was broadcast."""
        weighted = v * weights.get("weight", 1.0)
        return tuple(_unbroadcast(weighted * slope, x.shape) for x, slope in zip(inputs, self.slopes(*inputs)))


class BatchedLoss(Batched):
    """A criterion that takes one sample, whose loss is one number; what is reduced has no batch axis in any case."""

    sample_since = "1.12"  # at the latest
    reduction: str

    @property
    def axes_out(self) -> Iterable[Axis]:
        """That of the losses."""
        return (0 if self.reduction == "none" else None,)

    def reduced(self, step: Step) -> tuple[Form, ...]:
        """The same as `_Loss.reduced`; the one loss of one sample is a number already."""
        return step.alone(step.v) if self.unbatched else super().reduced(step)  # type: ignore[misc]


def _unbroadcast(gradient: Array, shape: Shape) -> Array:
    """The gradient summed over the axes that ``shape`` has a 1 at."""
    stretched = tuple(i for i, (have, want) in enumerate(zip(gradient.shape, shape)) if have != want)
    return np.asarray(gradient.sum(stretched, keepdims=True))


def weights(count: int) -> st.SearchStrategy[tuple[float, ...] | None]:
    """No rescaling weight, or ``count`` of them, exact in every floating type."""
    return st.none() | st.tuples(*[st.sampled_from([1.0, 0.5, 2.0, 0.25])] * count)
