"""Which shapes can a step start from, and what does it give? What the grammar and the proofs of formulas draw from."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.primitive import MOST, Array, Drawn, Operand, Primitive, Shape, SingleStep
from hookcheck.topology.values import WHOLE


@cache
def ranks(kind: type[Drawn]) -> tuple[int, ...]:
    """The numbers of dimensions that a first input of ``kind`` may have."""
    return tuple(rank for rank in range(MOST + 1) if kind.takes((4,) * rank))


@st.composite
def shapes_for(draw: st.DrawFn, kind: type[Drawn], longest: int = 4) -> Shape:
    """A shape that ``kind`` takes, each side from 1 to ``longest``."""
    rank = draw(st.sampled_from(sorted(ranks(kind), key=lambda rank: (not rank, rank))))  # a scalar is a special case
    sides = st.tuples(*[st.integers(1, longest)] * max(rank, 1)).map(lambda sides: sides[:rank])
    return draw(sides.filter(kind.takes))


def that_take(kinds: Iterable[type[Drawn]], shape: Shape) -> tuple[type[Drawn], ...]:
    """Those of ``kinds`` that take a first input of ``shape``."""
    return tuple(kind for kind in kinds if kind.takes(shape))


def placeholder(operand: Operand) -> Array:
    """Numbers that an operand may hold, for working out shapes."""
    if operand.domain == "distinct":
        count = int(np.prod(operand.shape[2:], dtype=int))
        return np.broadcast_to(np.arange(count).reshape(operand.shape[2:]), operand.shape)
    if operand.domain == "mask":
        return np.zeros(operand.shape, bool)
    if operand.domain in WHOLE:
        return np.full(operand.shape, int(operand.domain == "label"))
    return np.full(operand.shape, 0.5 + 0.5j if operand.domain == "complex" else 0.5)


def output_shapes(primitive: Primitive, operands: tuple[Operand, ...]) -> tuple[tuple[Shape, str], ...]:
    """The shape and NumPy's kind of each output for such operands."""
    buffers = primitive.buffers() if isinstance(primitive, SingleStep) else {}
    parameters = {name: np.full(shape, 0.5) for name, shape in primitive.parameters().items()}
    outputs = primitive.forward(tuple(map(placeholder, operands)), {**parameters, **buffers})
    return tuple((output.shape, output.dtype.kind) for output in outputs)
