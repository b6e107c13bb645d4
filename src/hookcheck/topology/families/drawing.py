"""How are the parts that families share drawn? Small first, valid by construction: no draw is thrown away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Input,
    Module,
    Sequential,
    Statement,
    Topology,
    children,
)
from hookcheck.topology.ops import Mean, Mul, Sum
from hookcheck.topology.primitive import Layer, Shape, SingleStep
from hookcheck.topology.tree import Ref

Draw = st.DrawFn
Kept = TypeVar("Kept")

WIDTHS = st.integers(1, 4)
SEEDS = st.builds(lambda high, low: 64 * high + low, st.integers(0, 63), st.integers(0, 63))
"""In two parts: among numbers from 100 on Hypothesis tries those in the code around, which differ from user to user."""
DTYPES = st.sampled_from(["float64", "float64", "float64", "float32"])
ACTIVATIONS = st.sampled_from([Sigmoid(), Tanh(), ReLU()])


def repeated(draw: Draw, act: Callable[[], None], least: int, most: int) -> None:
    """Calls ``act``, which draws, that many times; what it draws is a span, which shrinking knows to leave out."""
    for _ in range(draw(st.integers(least, most))):
        draw(st.builds(act))


def latest(draw: Draw, values: Sequence[Kept]) -> Kept:
    """One of ``values``, counted from the last. What is drawn fits any number of them, so that it stays in place, and
    mostly means the same, when shrinking leaves out what made one of them."""
    return values[-1 - draw(st.integers(0, 11)) % len(values)]


@st.composite
def convolutions(draw: Draw) -> tuple[Conv2d, Shape]:
    """A Conv2d and the shape of an input that it takes, (N, C, H, W)."""
    groups = draw(st.integers(1, 2))
    pair = st.tuples(st.integers(1, 2), st.integers(1, 2))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    stride, dilation, padding = draw(pair), draw(pair), draw(st.tuples(st.integers(0, 1), st.integers(0, 1)))
    layer = Conv2d(
        in_channels=groups * draw(st.integers(1, 2)),
        out_channels=groups * draw(st.integers(1, 2)),
        kernel_size=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=draw(st.booleans()),
    )
    reach = [max(1, d * (k - 1) + 1 - 2 * p) for d, k, p in zip(dilation, kernel, padding)]
    height, width = (r + draw(st.integers(0, 2)) for r in reach)
    return layer, (draw(st.integers(1, 2)), layer.in_channels, height, width)


@st.composite
def linears(draw: Draw, in_features: int) -> Linear:
    """A Linear for inputs of that width."""
    return Linear(in_features, draw(WIDTHS), draw(st.booleans()))


@st.composite
def layers(draw: Draw, shape: Shape) -> Layer:
    """A layer that takes an input of ``shape`` (..., features)."""
    linear: Layer = draw(linears(shape[-1]))
    return draw(st.one_of(st.just(linear), ACTIVATIONS))


@st.composite
def chains(draw: Draw, shape: Shape, least: int = 1, most: int = 3) -> tuple[Layer, ...]:
    """Layers each of which takes what the one before it gives, the first an input of ``shape``."""
    chain: list[Layer] = []
    for _ in range(draw(st.integers(least, most))):
        layer = draw(layers(shape))
        shape = output_shape(layer, shape)
        chain.append(layer)
    return tuple(chain)


@st.composite
def shapes(draw: Draw, least: int = 1, most: int = 3) -> Shape:
    """The shape of an input with that many dimensions, each from 1 to 4."""
    return tuple(draw(st.lists(WIDTHS, min_size=least, max_size=most)))


@st.composite
def losses(draw: Draw, outputs: tuple[tuple[str, Ref, Shape], ...]) -> tuple[tuple[Input, ...], tuple[Statement, ...]]:
    """A backward from ``outputs``, each given by a label, a reference and a shape.

    Either with a cotangent for each output, or from one scalar loss an output. Gives the inputs and the main statements
    that it needs.
    """
    cotangents = tuple(Input(f"v_{label}", shape) for label, _, shape in outputs)
    scalar = draw(st.booleans())
    if not scalar:
        return cotangents, (Backward(tuple(r for _, r, _ in outputs), tuple(Ref(c.name) for c in cotangents)),)
    reduction = draw(st.sampled_from([Sum(), Mean()]))
    weighted = tuple(Apply(f"p_{label}", Mul(), (ref, Ref(c.name))) for (label, ref, _), c in zip(outputs, cotangents))
    reduced = tuple(Apply(f"loss_{label}", reduction, (Ref(f"p_{label}"),)) for label, _, _ in outputs)
    return cotangents, (*weighted, *reduced, Backward(tuple(Ref(f"loss_{label}") for label, _, _ in outputs)))


def output_shape(module: Module, shape: Shape) -> Shape:
    """The shape of what a layer or a `Sequential` gives for an input of ``shape``."""
    if isinstance(module, Sequential):
        for _, child in children(module):
            shape = output_shape(child, shape)
        return shape
    assert isinstance(module, SingleStep)
    parameters = {name: np.zeros(s) for name, s in module.parameters().items()}
    result: Shape = module.forward((np.zeros(shape),), parameters)[0].shape
    return result


def body_of(chain: tuple[Module, ...], first: str = "x") -> tuple[tuple[Statement, ...], str]:
    """The statements that call the children ``m0``, ``m1``, … in turn, and the name of the last value."""
    statements: list[Statement] = []
    name = first
    for i, _ in enumerate(chain):
        statements.append(Call(f"h{i}", f"m{i}", (Ref(name),)))
        name = f"h{i}"
    return tuple(statements), name


def named(chain: tuple[Module, ...]) -> tuple[tuple[str, Module], ...]:
    """The children of `body_of`: ``m0``, ``m1``, …"""
    return tuple((f"m{i}", module) for i, module in enumerate(chain))


def composed(chain: tuple[Module, ...]) -> Composite:
    """A module of our own that calls ``chain`` in turn."""
    body, last = body_of(chain)
    return Composite(named(chain), ("x",), body, Ref(last))


@st.composite
def contained(draw: Draw, chain: tuple[Module, ...]) -> Module:
    """``chain`` as one module: itself if it is one layer, in ``nn.Sequential``, in a module of our own, or nested."""
    choices: list[Module] = [*chain] if len(chain) == 1 else []
    choices += [Sequential(chain), composed(chain), Sequential((Sequential(chain),)), composed((Sequential(chain),))]
    return draw(st.sampled_from(choices))


@st.composite
def trained(draw: Draw, module: Module, shape: Shape, output: Shape, requires_grad: bool = True) -> Topology:
    """The plain way to run a module: ``y = net(x)`` and a backward from ``y``."""
    inputs, backward = draw(losses((("y", Ref("y"), output),)))
    return Topology(
        module,
        (Input("x", shape, requires_grad), *inputs),
        (Call("y", "", (Ref("x"),)), *backward),
        dtype=draw(DTYPES),
        seed=draw(SEEDS),
    )
