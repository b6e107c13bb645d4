"""detached-inside: a part of the way that gradients would take is cut, by ``detach`` or by ``no_grad``."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.calling import finished, plain, taking
from hookcheck.topology.families.drawing import Draw, linears, shapes
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.model import Input, Topology, Within
from hookcheck.topology.ops import Add, Mul
from hookcheck.topology.ops.views import Detach
from hookcheck.topology.primitive import Operand
from hookcheck.topology.tree import Pack, Ref, Tree


@st.composite
def topologies(draw: Draw) -> Topology:
    """A Linear whose input is cut off, or two branches of which one is."""
    inputs = (Input("x", draw(shapes()), draw(st.sampled_from([True, True, False]))),)
    writer = taking(draw, plain(inputs), inputs)
    value = _linear(draw, writer, writer.inputs[0])
    last = _before_a_linear(draw, writer, value) if draw(st.booleans()) else _on_a_branch(draw, writer, value)
    gives: Tree = last.ref
    if draw(st.booleans()):
        gives = Pack("tuple", (last.ref, value.ref))
    return finished(draw, writer, gives, [last, value], inputs)


def _before_a_linear(draw: Draw, writer: Writer, value: Value) -> Value:
    """A Linear, alone or in a module of our own, that alone requires grad in what follows the cut."""
    value = _cut(draw, writer, value)
    if not draw(st.booleans()):
        return _linear(draw, writer, value)
    inner = Writer(draw, value.shape)
    last = _linear(draw, inner, inner.inputs[0])
    return Value(Ref(writer.inner(inner, last.ref, value)), last.shape)


def _on_a_branch(draw: Draw, writer: Writer, value: Value) -> Value:
    """Two branches that meet, and of which one is cut."""
    cut = _cut(draw, writer, value)
    attached = _elementwise(draw, writer, value) if draw(st.booleans()) else value
    (met,) = writer.op(draw(st.sampled_from([Add(), Mul()])), *draw(st.permutations([attached, cut])))
    return met


def _cut(draw: Draw, writer: Writer, value: Value) -> Value:
    """``value`` out of the graph: detached, or after a layer under ``no_grad``, alone or in a module of its own."""
    if draw(st.booleans()):
        inner = Writer(draw, value.shape)
        last = _cut(draw, inner, inner.inputs[0])
        return Value(Ref(writer.inner(inner, last.ref, value)), last.shape)
    if draw(st.booleans()):
        (detached,) = writer.op(Detach(), value)
        return _elementwise(draw, writer, detached) if draw(st.booleans()) else detached
    before = len(writer.statements)
    value = _elementwise(draw, writer, value)
    writer.statements[before:] = [Within("no_grad", tuple(writer.statements[before:]))]
    return value


def _linear(draw: Draw, writer: Writer, value: Value) -> Value:
    layer = draw(linears(value.shape[-1]))
    return writer.call(writer.child(layer), layer, (value.ref,), (Operand(value.shape),))[0]


def _elementwise(draw: Draw, writer: Writer, value: Value) -> Value:
    """A layer that keeps the shape."""
    layer = draw(st.sampled_from([ReLU(), Sigmoid(), Tanh()]))
    return writer.call(writer.child(layer), layer, (value.ref,), (Operand(value.shape),))[0]
