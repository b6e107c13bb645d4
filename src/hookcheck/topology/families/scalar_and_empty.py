"""scalar-and-empty: tensors without dimensions or without elements, as inputs, between steps and as outputs."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw, shapes
from hookcheck.topology.families.grammar import Writer
from hookcheck.topology.families.networks import Network, Program, backed, network, topology
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.loss_elementwise import MSELoss
from hookcheck.topology.model import Apply, Backward, Input, Topology
from hookcheck.topology.ops import Mean, Mul, Sum
from hookcheck.topology.primitive import Operand, Shape
from hookcheck.topology.tree import Ref

SHAPES: list[Shape] = [(), (0,), (0, 3), (2, 0), (2, 0, 3), (0, 2, 3), (2, 3, 0), (0, 2, 4, 4)]


@st.composite
def topologies(draw: Draw) -> Topology:
    """Steps on such a tensor, alone or beside one that is neither, or a module whose output is its own loss."""
    net = draw(st.one_of(_special(), _reduced(), _beside()))
    inputs, backward = draw(_backed(net))
    return topology(draw, net.module, (*net.arguments, *inputs), (net.call(), *backward))


@st.composite
def _special(draw: Draw) -> Network:
    """Any steps on such a tensor."""
    writer = Writer(draw, draw(st.sampled_from(SHAPES)))
    (value,) = writer.inputs
    if Linear.takes(value.shape) and draw(st.booleans()):  # the one layer with parameters that takes them
        (value,) = writer.step(value, (Linear,))
    return network(writer, writer.chain(value, 1, 2))


@st.composite
def _reduced(draw: Draw) -> Network:
    """A module that gives a loss, a tensor without dimensions."""
    writer = Writer(draw, draw(st.one_of(shapes(), st.sampled_from(SHAPES))))
    value = writer.chain(writer.inputs[0], 0, 2)
    if all(value.shape) and draw(st.booleans()):
        layer, operand = MSELoss(draw(st.sampled_from(["mean", "sum"]))), Operand(value.shape)
        (loss,) = writer.call(writer.child(layer), layer, (value.ref, writer.need(operand)), (operand, operand))
    else:
        (loss,) = writer.op(draw(st.sampled_from([Sum(), Mean()] if all(value.shape) else [Sum()])), value)
    return network(writer, loss)


@st.composite
def _beside(draw: Draw) -> Network:
    """Two inputs of which one is such a tensor, each through a layer, given back side by side."""
    both = draw(st.permutations([draw(st.sampled_from(SHAPES)), draw(shapes())]))
    writer = Writer(draw, *both)
    return network(writer, *(writer.chain(value, 1, 2) for value in writer.inputs))


@st.composite
def _backed(draw: Draw, net: Network) -> Program:
    """A backward by cotangents or from losses; the mean of no numbers is none, so those losses are sums."""
    if all(all(value.shape) for value in net.outputs):
        return backed(draw, net.named("y"))
    cotangents = tuple(Input(f"v_{label}", value.shape) for label, value in net.named("y"))
    pairs = tuple(zip(net.outputs, cotangents))
    if draw(st.booleans()):
        weighed = tuple(Apply(f"p_{c.name[2:]}", Mul(), (value.ref, Ref(c.name))) for value, c in pairs)
        sums = tuple(Apply(f"loss_{p.out[2:]}", Sum(), (Ref(p.out),)) for p in weighed)
        return cotangents, (*weighed, *sums, Backward(tuple(Ref(s.out) for s in sums)))
    return cotangents, (Backward(tuple(value.ref for value, _ in pairs), tuple(Ref(c.name) for c in cotangents)),)
