"""How does a layer take an input without the batch axis? As a batch of one, whose axis is taken away again.

torch documents for most layers that the axis of the batch may be missing, and runs other Nodes then: it adds the axis,
and takes it away from what comes out. The formulas are those of a batch all the same, so they are written for one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from itertools import repeat
from typing import Any, ClassVar, Optional

from hypothesis.strategies import DrawFn, booleans

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.primitive import Array, Arrays, Layer, Operand, Shape, SingleStep

Axis = Optional[int]
"""Where a tensor has the axis of the batch; None if nowhere."""


class Batched(SingleStep):
    """A layer whose formulas are for a batch; with ``unbatched`` set, what it is given has no axis of the batch.

    It comes first among the bases of a layer: `value` and `pull`, and what the layer defines by the names ``…_batch``,
    are given a batch in any case. The field ``unbatched`` is no argument of torch's constructor; each layer has it
    last.
    """

    unbatched: bool = False
    sample_since: ClassVar[str] = "1.11"
    """The first torch release that takes an input without the batch axis. Most came with 1.11, the last release that
    the list of pytorch issue 60585 was worked on in."""

    squeezed: ClassVar[bool] = False
    """Whether torch takes the axis away by a Node of its own; kernels that know of it do without."""

    @property
    def unbatched_since(self) -> str:
        """That release, if there is no batch."""
        return self.sample_since if self.unbatched else ""

    def axes_in(self, count: int) -> Iterable[Axis]:
        """Where each of ``count`` inputs has the axis of the batch: first."""
        return repeat(0)

    @property
    def axes_out(self) -> Iterable[Axis]:
        """Where each output has it."""
        return repeat(0)

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """The shapes of a batch, and those without their first axis."""
        return cls.takes_batch(shape) or cls.takes_batch((1, *shape))

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """What fits a batch, or a batch of one."""
        if cls.takes_batch(shape):
            return cls.fitting_batch(draw, shape)
        return cls.sample(*cls.fitting_batch(draw, (1, *shape)))

    def forward(self, inputs: Arrays, parameters: dict[str, Array]) -> Arrays:
        """The outputs, with the batch axis where the inputs have it."""
        return self.bare(super().forward(self.batched(inputs, self.axes_in(len(inputs))), parameters), self.axes_out)

    def vjp(
        self, inputs: Arrays, parameters: dict[str, Array], cotangents: Arrays
    ) -> tuple[tuple[Array | None, ...], dict[str, Array]]:
        """The gradients, those of the inputs in their shapes."""
        x, v = self.batched(inputs, self.axes_in(len(inputs))), self.batched(cotangents, self.axes_out)
        of_inputs, of_parameters = super().vjp(x, parameters, v)
        return self.bare(of_inputs, self.axes_in(len(inputs))), of_parameters

    def updated(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> dict[str, Array]:
        """What a batch of these inputs leaves in the buffers."""
        return super().updated(self.batched(inputs, self.axes_in(len(inputs))), parameters)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """That of a batch, or the one that takes the axis of the batch away."""
        if not (self.unbatched and self.squeezed):
            return self.last_node_of_batch(step)
        return step.view(self.batched(step.cotangents, self.axes_out)[step.slot])

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """The same as `last_node`, where that Node is not the last."""
        return super().last_node(step)

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """Whether a first input of ``shape``, which has the batch axis, can be fitted."""
        return super().takes(shape)

    @classmethod
    def fitting_batch(cls, draw: DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """The same as `fitting`, for a batch."""
        return super().fitting(draw, shape)  # type: ignore[return-value]

    @staticmethod
    def sample(layer: Layer, operands: tuple[Operand, ...]) -> tuple[Layer, tuple[Operand, ...]]:
        """The layer for a batch of one, and the operands, both without the batch axis."""
        assert isinstance(layer, Batched)
        settings: Any = layer
        axes = zip(operands, layer.axes_in(len(operands)))
        samples = (o if axis is None else replace(o, shape=(*o.shape[:axis], *o.shape[axis + 1 :])) for o, axis in axes)
        return replace(settings, unbatched=True), tuple(samples)

    def batched(self, tensors: tuple[Any, ...], axes: Iterable[Axis]) -> tuple[Any, ...]:
        """The tensors, with the batch axis at ``axes`` if they have none."""
        if not self.unbatched:
            return tensors
        return tuple(t if axis is None else t[(slice(None),) * axis + (None,)] for t, axis in zip(tensors, axes))

    def bare(self, tensors: tuple[Any, ...], axes: Iterable[Axis]) -> tuple[Any, ...]:
        """The tensors, some of which may be None, less the batch axis at ``axes`` if the inputs have none."""
        if not self.unbatched:
            return tensors
        return tuple(t if t is None or axis is None else t.squeeze(axis) for t, axis in zip(tensors, axes))


class BatchedSequence(Batched):
    """The same for a sequence, (T, N, E), or (N, T, E) under ``batch_first``."""

    batch_first: bool

    @property
    def first_axis(self) -> int:
        """Where a sequence has the axis of the batch."""
        return 0 if self.batch_first else 1

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Three dimensions, or (T, E)."""
        return len(shape) in (2, 3) and all(shape)

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Batch first or steps first, which without a batch says nothing."""
        batch_first = draw(booleans())
        if len(shape) == 3:
            return cls.fitting_sequence(draw, shape, batch_first)
        steps, features = shape
        whole = (1, steps, features) if batch_first else (steps, 1, features)
        return cls.sample(*cls.fitting_sequence(draw, whole, batch_first))

    @classmethod
    @abstractmethod
    def fitting_sequence(cls, draw: DrawFn, shape: Shape, batch_first: bool) -> tuple[Layer, tuple[Operand, ...]]:
        """The same as `fitting`, for a batch of sequences of ``shape``."""
