"""How the settings of each layer and operation are drawn to prove its formulas, and the arrays to prove them on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass

import numpy as np
from hypothesis import strategies as st

import hookcheck.topology.layers
import hookcheck.topology.ops  # noqa: F401 -- both are imported for the classes that they define
from hookcheck.topology.families.drawing import convolutions
from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.structure import Flatten
from hookcheck.topology.model import Array, Primitive, Shape
from hookcheck.topology.ops import Add, Mean, Mul, Sum
from hookcheck.topology.values import draw


@dataclass(frozen=True, eq=False)
class Step:
    """A primitive with arrays for its inputs and parameters and a cotangent for each output.

    No number is 0, so none lies on a kink of an activation.
    """

    primitive: Primitive
    inputs: tuple[Array, ...]
    parameters: dict[str, Array]
    cotangents: tuple[Array, ...]


SHAPES = st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple)
Settings = st.SearchStrategy[tuple[Primitive, tuple[Shape, ...]]]


@st.composite
def linears(draw_: st.DrawFn) -> tuple[Primitive, tuple[Shape, ...]]:
    shape = draw_(SHAPES)
    return Linear(shape[-1], draw_(st.integers(1, 3)), draw_(st.booleans())), (shape,)


def of_one(primitive: Primitive) -> Settings:
    return SHAPES.map(lambda shape: (primitive, (shape,)))


def of_two(primitive: Primitive) -> Settings:
    return SHAPES.map(lambda shape: (primitive, (shape, shape)))


DRAWN: dict[type[Primitive], Settings] = {
    Linear: linears(),
    Conv2d: convolutions().map(lambda drawn: (drawn[0], (drawn[1],))),
    Sigmoid: of_one(Sigmoid()),
    Tanh: of_one(Tanh()),
    ReLU: of_one(ReLU()),
    Flatten: st.lists(st.integers(1, 3), min_size=2, max_size=4).map(lambda shape: (Flatten(), (tuple(shape),))),
    Add: of_two(Add()),
    Mul: of_two(Mul()),
    Sum: of_one(Sum()),
    Mean: of_one(Mean()),
}
"""Settings of each primitive and the shapes of its inputs."""


def existing(base: type[Primitive] = Primitive) -> Iterator[type[Primitive]]:
    """Every layer and operation that hookcheck has; base classes, which are no dataclasses, are left out."""
    for child in base.__subclasses__():
        if is_dataclass(child) and child.__module__.startswith("hookcheck."):
            yield child
        yield from existing(child)


@st.composite
def steps(draw_: st.DrawFn, kind: type[Primitive]) -> Step:
    """A primitive of that kind with its arrays."""
    primitive, shapes = draw_(DRAWN[kind])
    seed = draw_(st.integers(0, 2**16 - 1))
    inputs = tuple(draw(seed, f"input {i}", shape) for i, shape in enumerate(shapes))
    parameters = {name: draw(seed, name, shape) for name, shape in primitive.parameters().items()}
    outputs = primitive.forward(inputs, parameters)
    return Step(primitive, inputs, parameters, tuple(draw(seed, f"v {j}", y.shape) for j, y in enumerate(outputs)))


def assert_close(observed: Array, expected: Array, relative: float) -> None:
    """One shape, and a difference of at most ``relative`` times the largest number (at least 1)."""
    assert observed.shape == expected.shape
    np.testing.assert_allclose(observed, expected, rtol=0, atol=relative * max(1.0, float(np.abs(expected).max())))
