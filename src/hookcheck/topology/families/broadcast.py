"""broadcast: operands of different shapes that broadcast, between modules; tensors that are expanded."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.families.drawing import ACTIVATIONS, Draw, shapes
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.networks import backed, network, topology
from hookcheck.topology.model import Topology
from hookcheck.topology.ops import Add, Mul
from hookcheck.topology.ops.arithmetic import Div, Maximum, Minimum, Sub
from hookcheck.topology.ops.elementwise import Exp
from hookcheck.topology.ops.views import Expand
from hookcheck.topology.primitive import MOST, Operand, Shape
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """Two values of different shapes, each from a module, meet in an operation, or are expanded first; then more."""
    shape = draw(shapes())
    first = Writer(draw, shape)
    result = first.chain(first.inputs[0], 1, 2)
    other = draw(st.sampled_from(partners(result.shape)))
    writer = Writer(draw, shape, other)
    left = Value(Ref(writer.inner(first, result.ref, writer.inputs[0])), result.shape)
    layer = draw(ACTIVATIONS)
    (right,) = writer.call(writer.child(layer), layer, (writer.inputs[1].ref,), (Operand(other),))
    value = draw(st.sampled_from([met, expanded]))(draw, writer, left, right)
    net = network(writer, writer.chain(value, 0, 1))
    inputs, backward = backed(draw, net.named("y"))
    return topology(draw, net.module, (*net.arguments, *inputs), (net.call(), *backward))


def partners(shape: Shape) -> list[Shape]:
    """Shapes unlike ``shape`` that broadcast with it: shorter ones, with sides of 1, and larger ones."""
    ones: list[Shape] = [(*shape[:i], 1, *shape[i + 1 :]) for i in range(len(shape))]
    grown = tuple(n if n > 1 else 2 for n in shape)
    crossed = tuple(2 if n == 1 else 1 for n in shape)
    candidates: list[Shape] = [*ones, shape[1:], crossed, (1,) * len(shape), (), grown, (2, *shape), (2, *crossed)]
    return [other for other in dict.fromkeys(candidates) if other != shape and len(other) <= MOST]


def met(draw: Draw, writer: Writer, left: Value, right: Value) -> Value:
    """An operation on both, in either order; a divisor is an exponential, which is far from 0."""
    op = draw(st.sampled_from([Add(), Mul(), Sub(), Maximum(), Minimum(), Div()]))
    if isinstance(op, Div):
        return writer.op(op, left, *writer.op(Exp(), right))[0]
    return writer.op(op, *draw(st.permutations([left, right])))[0]


def expanded(draw: Draw, writer: Writer, left: Value, right: Value) -> Value:
    """Both expanded to the shape that they share, then multiplied."""
    shared = np.broadcast(np.empty(left.shape), np.empty(right.shape)).shape
    return writer.op(Mul(), *(writer.op(Expand(shared), value)[0] for value in (left, right)))[0]
