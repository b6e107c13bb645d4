"""double-backward: a gradient that has a graph of its own, a loss on it, and a second backward: a gradient penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw, repeated
from hookcheck.topology.families.fitting import that_take
from hookcheck.topology.families.grammar import Value, Writer, fitted, having
from hookcheck.topology.families.networks import Network, network, topology
from hookcheck.topology.layers.convolving import Convolving
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Grad, Input, Statement, Topology
from hookcheck.topology.ops import Add, Mean, Mul, Sum
from hookcheck.topology.ops.elementwise import Pow
from hookcheck.topology.primitive import Drawn, Operand, Shape
from hookcheck.topology.tree import Ref

CURVED = having("curved")
"""Steps whose VJP depends on their input everywhere."""

SMOOTH = (*CURVED, *having("smooth"))
"""Steps whose derivative of second order torch and formulas know alike."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """The gradients of a net's output for some leaves, squared and summed, perhaps beside a loss; then the gradients of
    that, all or some."""
    net = draw(nets())
    (y,) = net.outputs
    v = Input("v_y", y.shape)
    weighed = (
        Apply("p", Mul(), (y.ref, Ref("v_y"))),
        Apply("loss", draw(st.sampled_from([Sum(), Mean()])), (Ref("p"),)),
    )
    leaves = [*(i.name for i in net.arguments if i.requires_grad), *(f"net.{name}" for name in net.parameters)]
    asked = tuple(map(Ref, draw(st.lists(st.sampled_from(leaves), min_size=1, max_size=2, unique=True))))
    from_loss = draw(st.booleans())
    first = (
        Grad("g", (Ref("loss"),), asked, create_graph=True)
        if from_loss
        else Grad("g", (y.ref,), asked, (Ref("v_y"),), create_graph=True)
    )
    penalty = _squared(draw, draw(st.integers(1, len(asked))))
    total = penalty[-1].out
    with_loss = draw(st.booleans())
    if with_loss:
        penalty.append(Apply("total", Add(), (Ref("loss"), Ref(total))))
        total = "total"
    main: list[Statement] = [net.call(), *(weighed if from_loss or with_loss else ()), first, *penalty]
    some = tuple(map(Ref, draw(st.lists(st.sampled_from(leaves), min_size=1, max_size=2, unique=True))))
    last: list[Statement] = [
        Backward((Ref(total),)),
        Backward((Ref(total),), inputs=some),
        Grad("gg", (Ref(total),), some),
    ]
    return topology(draw, net.module, (*net.arguments, v), (*main, draw(st.sampled_from(last))))


def _squared(draw: Draw, count: int) -> list[Apply]:
    """The sum of squares of the first of ``g``'s members, the result last."""
    squares: list[Apply] = []
    for i in range(count):
        gradient = Ref("g", (i,))
        square = (
            Apply(f"q{i}", Mul(), (gradient, gradient)) if draw(st.booleans()) else Apply(f"q{i}", Pow(2), (gradient,))
        )
        squares += [square, Apply(f"n{i}", Sum(), (Ref(f"q{i}"),))]
        if i:
            squares.append(Apply(f"s{i}", Add(), (Ref(f"s{i - 1}" if i > 1 else "n0"), Ref(f"n{i}"))))
    return squares


@st.composite
def nets(draw: Draw) -> Network:
    """A Linear, perhaps steps or a module of them, and a curved step, so that every gradient has a gradient."""
    shape = tuple(draw(st.lists(st.integers(2, 3), min_size=1, max_size=4)))
    if draw(st.sampled_from([False, False, True])):
        writer = Writer(draw, shape, shape)
        return network(writer, paired(writer))
    writer = Writer(draw, shape)
    values = [stepped(writer, writer.inputs[0], (Linear,))]

    def step() -> None:
        if draw(st.booleans()):
            inner = Writer(draw, values[-1].shape)
            middle = stepped(inner, inner.inputs[0], SMOOTH)
            result = stepped(inner, middle, SMOOTH) if draw(st.booleans()) else middle
            values.append(Value(Ref(writer.inner(inner, result.ref, values[-1])), result.shape))
        else:
            values.append(stepped(writer, values[-1], SMOOTH))

    repeated(draw, step, 0, 2)
    value = stepped(writer, values[-1], CURVED)
    return network(writer, value, requires_grad=draw(st.sampled_from([True, True, False])))


def paired(writer: Writer) -> Value:
    """A module on two inputs, each through a Linear and a curved step of its own, which then meet."""
    inner = Writer(writer.draw, *(value.shape for value in writer.inputs))
    width = writer.draw(st.integers(1, 2))
    ends = []
    for value in inner.inputs:
        layer = Linear(value.shape[-1], width, writer.draw(st.booleans()))
        (output,) = inner.call(inner.child(layer), layer, (value.ref,), (Operand(value.shape),))
        ends.append(stepped(inner, output, CURVED))
    (met,) = inner.op(writer.draw(st.sampled_from([Add(), Mul()])), *ends)
    return Value(Ref(writer.inner(inner, met.ref, *writer.inputs)), met.shape)


def stepped(writer: Writer, value: Value, kinds: tuple[type[Drawn], ...]) -> Value:
    """One step of those kinds that take the value; none along a side of 1, where there is nothing to normalise."""
    fit = that_take(kinds, value.shape)
    if 1 in value.shape:
        fit = tuple(kind for kind in fit if kind.__name__ not in NORMS)
    primitive, operands = fitted(writer.draw, writer.draw(st.sampled_from(fit)), value.shape)
    if isinstance(primitive, Convolving) and not reads_everywhere(primitive, value.shape):
        primitive = pointwise(primitive)
    return writer.draw(st.sampled_from(writer.placed(value, primitive, operands)))


def pointwise(layer: Any) -> Drawn:
    """The convolution of one element by one, of as many channels."""
    settings = {"groups": layer.groups, "bias": layer.bias, "unbatched": layer.unbatched}
    convolution: Drawn = type(layer)(layer.in_channels, layer.out_channels, (1,) * layer.axes, **settings)
    return convolution


def reads_everywhere(layer: Convolving, shape: Shape) -> bool:
    """Whether each number that a convolution gives reads its input, and not padding alone.

    What reads none is constant, and no numbers tell on what its gradient depends, where torch goes by its formula; and
    of zeros a cosine has no second derivative.
    """
    weights = {name: np.full(of, float(name != "bias")) for name, of in layer.parameters().items()}
    return bool(layer.forward((np.ones(shape),), weights)[0].all())


NORMS = (
    "LayerNorm", "Softmax", "Softmin", "LogSoftmax", "BatchNorm1d", "BatchNorm2d", "InstanceNorm1d", "InstanceNorm2d",
    "GroupNorm",
)  # fmt: skip
