"""pass-through: what a module gives back is its input itself."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw, composed, trained
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.wiring import SMALL, branch, called, finished, learned
from hookcheck.topology.layers.dropout import AlphaDropout, Dropout
from hookcheck.topology.layers.identity import Identity
from hookcheck.topology.model import Composite, Module, Sequential, Topology
from hookcheck.topology.primitive import Layer
from hookcheck.topology.tree import Pack, Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """A module that passes its input on: alone, or among other steps and perhaps with another output beside it."""
    training, shape = draw(st.sampled_from([True, False])), draw(SMALL)
    if not draw(st.booleans()):
        return replace(draw(trained(_passing(draw, training), shape, shape)), training=training)
    writer, requires_grad = Writer(draw, shape), draw(st.sampled_from([True, True, False]))
    value = writer.inputs[0]
    if draw(st.booleans()):
        value = branch(writer, value, 1, 1)
    beside = []
    if draw(st.booleans()):
        value, other = _with_another(writer, value)
        beside.append(other)
    else:
        value = called(writer, _passing(draw, training), value, value.shape)
    if draw(st.booleans()):
        value = branch(writer, value, 1, 1)
    if requires_grad:
        topology = finished(writer, [value, *beside])
    else:
        topology = finished(writer, [learned(writer, value)], False, without_loss=tuple(beside))
    return replace(topology, training=training)


def _passing(draw: Draw, training: bool) -> Module:
    """A module that gives its one input back."""
    dropped = 0.0 if training else 0.5
    layers: list[Layer] = [Identity(), Dropout(dropped), AlphaDropout(dropped)]
    layer = draw(st.sampled_from(layers))
    itself = Composite((), ("x",), (), Ref("x"))
    modules: list[Module] = [layer, itself, composed((layer,)), Sequential((layer,)), Sequential(())]
    return draw(st.sampled_from(modules))


def _with_another(writer: Writer, value: Value) -> tuple[Value, Value]:
    """Both outputs of a module that gives its input back, once more or beside something made of it."""
    inner = Writer(writer.draw, value.shape)
    (x,) = inner.inputs
    other = writer.draw(st.sampled_from([branch, lambda *_: x]))(inner, x)
    first, second = writer.draw(st.sampled_from([(x, other), (other, x)]))
    name = writer.inner(inner, Pack("tuple", (first.ref, second.ref)), value)
    return Value(Ref(name, (0,)), first.shape), Value(Ref(name, (1,)), second.shape)
