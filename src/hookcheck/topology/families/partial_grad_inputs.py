"""partial-grad-inputs: several inputs, of which some require grad; also of modules inside, in either order."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw, shapes
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.networks import backed, network, topology
from hookcheck.topology.layers.bilinear import Bilinear
from hookcheck.topology.model import Topology
from hookcheck.topology.ops import Add, Mean, Mul
from hookcheck.topology.ops.arithmetic import Sub
from hookcheck.topology.primitive import Operand
from hookcheck.topology.tree import Ref

FLAGS = [(True, False), (False, True), (True, False, False), (False, True, False), (True, False, True)]


@st.composite
def topologies(draw: Draw) -> Topology:
    """A module on two or three inputs, each perhaps through layers, that hands them to a module or a layer of several
    inputs; one or two outputs."""
    flags = draw(st.sampled_from(FLAGS))
    writer = Writer(draw, *(draw(shapes(least=2)) for _ in flags))
    values = [value if draw(st.booleans()) else writer.chain(value, 1, 1) for value in writer.inputs]
    while len(values) > 1:
        left, right = draw(st.permutations(values[:2]))
        met = draw(st.sampled_from([met_here, met_inside, *([met_in_bilinear] if fit(left, right) else [])]))
        values = [*values[2:], met(draw, writer, left, right)]
    outputs = [*values, *draw(st.sampled_from([[], [], [writer.inputs[flags.index(True)]]]))]
    net = network(writer, *outputs, requires_grad=flags)
    inputs, backward = backed(draw, net.named("y"))
    return topology(draw, net.module, (*net.arguments, *inputs), (net.call(), *backward))


def met_here(draw: Draw, writer: Writer, left: Value, right: Value) -> Value:
    """An operation on both; one of another shape goes in by its mean."""
    if left.shape != right.shape:
        (right,) = writer.op(Mean(), right)
    return writer.op(draw(st.sampled_from([Add(), Mul(), Sub()])), left, right)[0]


def met_inside(draw: Draw, writer: Writer, left: Value, right: Value) -> Value:
    """A module that is called with both, and has a layer on either of them or on none."""
    inner = Writer(draw, left.shape, right.shape)
    result = met_here(draw, inner, *(inner.chain(value, 0, 1) for value in inner.inputs))
    return Value(Ref(writer.inner(inner, result.ref, left, right)), result.shape)


def fit(left: Value, right: Value) -> bool:
    """Whether a Bilinear takes both."""
    return len(left.shape) > 1 and all(left.shape) and left.shape[:-1] == right.shape[:-1]


def met_in_bilinear(draw: Draw, writer: Writer, left: Value, right: Value) -> Value:
    """A Bilinear of both."""
    layer = Bilinear(left.shape[-1], right.shape[-1], draw(st.integers(1, 3)), draw(st.booleans()))
    operands = (Operand(left.shape), Operand(right.shape))
    return writer.call(writer.child(layer), layer, (left.ref, right.ref), operands)[0]
