"""What graph does a backward leave behind that records itself (``create_graph=True``)?

Each step of the backward becomes a node of its own: from the step's operands and the gradients of its outputs to the
gradients of its operands. Its own gradients are those of the step's hand-written VJP, in the operands by central
differences, and it leads to those on which that VJP depends. Boundaries hand on what they receive and add nothing. Real
tensors alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from hookcheck.oracle.graph import Key, Node, Pass, Tensor, Trace
from hookcheck.oracle.sweep import Sweep, vjp
from hookcheck.topology.ops import Add
from hookcheck.topology.primitive import Array, Primitive

STEP = 2.0**-17
"""The step of the differences: near the cube root of float64's rounding, where they are most exact."""


class Recording(Protocol):
    """What takes steps of the graph: the tracer."""

    result: Trace

    def step(
        self,
        primitive: Primitive,
        inputs: tuple[Tensor, ...],
        parameters: dict[str, Tensor],
        buffers: Mapping[str, Array],
    ) -> tuple[Tensor, ...]:
        """The outputs of one step."""


@dataclass(frozen=True, eq=False)
class Transposed(Primitive):
    """The VJP of ``node`` as a step: operands and cotangents to the gradients of the operands, where there are any.

    ``apart`` is the step of the differences.
    """

    node: Node
    apart: float = STEP

    def forward(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> tuple[Array, ...]:
        """The gradients of the operands; zeros for one that has none."""
        count = len(self.node.inputs)
        gradients = vjp(self.node, inputs[:count], inputs[count:])
        return tuple(np.zeros_like(x) if g is None else np.asarray(g) for x, g in zip(inputs, gradients))

    def vjp(
        self, inputs: tuple[Array, ...], parameters: dict[str, Array], cotangents: tuple[Array, ...]
    ) -> tuple[tuple[Array | None, ...], dict[str, Array]]:
        """The slopes of the sum of cotangents times outputs, element by element; None for an index.

        The VJP of the node is linear in what it receives, so what it gives for a unit there is the slope. For an
        operand they are central differences, in float64 even for numbers in float32: over so short a step those tell
        nothing.
        """
        count = len(self.node.inputs)
        operands, received = inputs[:count], tuple(np.zeros_like(v) for v in inputs[count:])
        wide = tuple(x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs)

        def weighed(arrays: tuple[Array, ...]) -> float:
            return float(sum((v * y).sum() for v, y in zip(cotangents, self.forward(arrays, {}))))

        def slope(place: int, index: tuple[int, ...]) -> float:
            if place >= count:
                return weighed((*operands, *_moved(received, place - count, index, 1)))
            above, below = (_moved(wide, place, index, step) for step in (self.apart, -self.apart))
            return (weighed(above) - weighed(below)) / (2 * self.apart)

        def slopes(place: int, x: Array) -> Array | None:
            if x.dtype.kind != "f":
                return None
            if not any(d and v.any() for d, v in zip(self._dependence[place], cotangents)):
                return np.zeros_like(x)
            return np.array([slope(place, index) for index in np.ndindex(*x.shape)]).reshape(x.shape)

        return tuple(slopes(place, x) for place, x in enumerate(inputs)), {}

    def reaches(self, given: tuple[bool, ...]) -> tuple[bool, ...] | None:
        """Those inputs on which one of the given outputs depends."""
        return tuple(any(g and d for g, d in zip(given, depends)) for depends in self._dependence)

    @cached_property
    def _dependence(self) -> list[list[bool]]:
        """For each input, whether each output changes as it does: near the operands' numbers, or between 0 and 1, since
        a step that saturates at its operands is constant there."""
        operands, shapes = tuple(t.array for t in self.node.inputs), self.node.shapes
        cotangents = tuple(_waves(np.zeros(shape), 1) for shape in shapes)
        starts = (*operands, *cotangents), tuple(_waves(x, 1) for x in (*operands, *cotangents))
        changes = [self._changing(start) for start in starts]
        return [[a or b for a, b in zip(*rows)] for rows in zip(*changes)]

    def _changing(self, inputs: tuple[Array, ...]) -> list[list[bool]]:
        """The same, near ``inputs``."""
        outputs = self.forward(inputs, {})
        moved = ((*inputs[:k], _shifted(x), *inputs[k + 1 :]) for k, x in enumerate(inputs))
        return [[not np.array_equal(a, b) for a, b in zip(outputs, self.forward(others, {}))] for others in moved]


def _moved(inputs: tuple[Array, ...], place: int, index: tuple[int, ...], step: float) -> tuple[Array, ...]:
    array = np.array(inputs[place])
    array[index] += step
    return (*inputs[:place], array, *inputs[place + 1 :])


def _waves(x: Array, frequency: float) -> Array:
    """Numbers between 0 and 1 in the place of those of ``x``, no two alike: what is invariant under a shift, as a
    normalisation is, must not take it for a constant. An index stays as it is."""
    return 0.5 + np.sin(frequency * (1 + np.arange(x.size))).reshape(x.shape) / 4 if x.dtype.kind == "f" else x


def _shifted(x: Array) -> Array:
    """``x``, every element of it moved, each by another step."""
    return x + _waves(x, 2) / 4 if x.dtype.kind == "f" else x


def differentiated(tracer: Recording, noted: Pass, cotangents: tuple[Tensor, ...], swept: Sweep) -> dict[Key, Tensor]:
    """Puts the steps of the pass ``noted``, which ``swept`` has worked out, into the graph.

    Gives the gradients of leaves, by name, and of intermediates, by node and slot, as tensors.
    """
    tracer.result.doubled = True
    # Where rounding is looked into, so is what the differences leave: over a longer step that is several times as much.
    apart = STEP if tracer.result.noise is None else 2 * STEP
    gradients: dict[Key, Tensor] = {}

    def give(tensor: Tensor, gradient: Tensor | None) -> None:
        if gradient is None or not tensor.requires_grad:
            return
        key: Key = tensor.name if tensor.node is None else (tensor.node.index, tensor.slot)
        known = gradients.get(key)
        gradients[key] = gradient if known is None else tracer.step(Add(), (known, gradient), {}, {})[0]

    ones = tuple(Tensor(array, False, root.dtype) for root, array in zip(noted.roots, noted.cotangents))
    for root, cotangent in zip(noted.roots, cotangents or ones):
        give(root, cotangent)
    for node in reversed(tracer.result.nodes[:]):
        if node.index not in swept.received:
            continue
        received = tuple(gradients.get((node.index, slot)) for slot in range(len(node.shapes)))
        if node.primitive is None:
            passed = received
        else:
            whole = tuple(
                Tensor(np.zeros(shape), False, node.inputs[0].dtype) if g is None else g
                for shape, g in zip(node.shapes, received)
            )
            passed_tensors = tracer.step(Transposed(node, apart), (*node.inputs, *whole), {}, {})
            passed = tuple(t if g is not None else None for t, g in zip(passed_tensors, swept.passed[node.index]))
        for tensor, gradient in zip(node.inputs, passed):
            give(tensor, gradient)
    return gradients
