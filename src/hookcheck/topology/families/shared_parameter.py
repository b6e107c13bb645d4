"""shared-parameter: two modules hold one parameter, or one body uses a parameter twice."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import ACTIVATIONS, Draw
from hookcheck.topology.families.grammar import Value, Writer, merged
from hookcheck.topology.families.wiring import SMALL, applied, branch, finished, projected
from hookcheck.topology.layers.embedding import Embedding
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import ParameterDict, ParameterList, Topology
from hookcheck.topology.ops import Add, Mul
from hookcheck.topology.ops.arithmetic import Sub
from hookcheck.topology.ops.contraction import MatMul
from hookcheck.topology.primitive import Op, Operand, Shape
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """Tied layers, parameters of a body's own, or a layer's weight that the body around it uses as well."""
    return draw(st.one_of(_tied(), _of_the_body(), _borrowed(), _embedding()))


@st.composite
def _tied(draw: Draw) -> Topology:
    """Two Linears of one size with one weight, or one bias, or both: one after the other, or side by side."""
    shape, behind = draw(SMALL), draw(st.booleans())
    layer = Linear(shape[-1], shape[-1] if behind else draw(st.integers(1, 3)))
    writer = Writer(draw, *[shape] * (1 if behind else draw(st.integers(1, 2))))
    left = applied(writer, layer, _changed(writer, writer.inputs[0]))
    right = applied(writer, layer, left if behind else writer.inputs[-1])
    first, second = (name for name, module in writer.children if module is layer)
    tied = draw(st.sampled_from([("weight",), ("bias",), ("weight", "bias")]))
    ties = tuple((f"{second}.{name}", f"{first}.{name}") for name in tied)
    flags = tuple(draw(st.sampled_from([True, False])) for _ in writer.inputs)
    return finished(writer, [right if behind else merged(writer, left, right)], flags, ties=ties)


@st.composite
def _of_the_body(draw: Draw) -> Topology:
    """A parameter of the body, or in a list or dictionary of parameters, used two or three times."""
    shape = draw(SMALL)
    writer = Writer(draw, shape)
    parameter = _held(writer, draw(st.sampled_from([shape, shape[-1:]])))
    value = writer.inputs[0]
    for i in range(draw(st.integers(2, 3))):
        used = parameter
        if draw(st.integers(0, 3)) == 3:
            used = applied(writer, draw(ACTIVATIONS), parameter)
        ops: list[Op] = [Mul(), Add(), Sub()]
        (value,) = writer.op(draw(st.sampled_from(ops)), _changed(writer, value) if i else value, used)
    return finished(writer, [value], draw(st.sampled_from([True, False])))


def _held(writer: Writer, shape: Shape) -> Value:
    """A parameter of that shape that the body holds, one way or another."""
    how = writer.draw(st.sampled_from(["itself", "list", "dictionary"]))
    if how == "itself":
        writer.parameters.append(("w", shape))
        return Value(Ref("self.w"), shape)
    in_list = how == "list"
    writer.children.append(("held", ParameterList((shape,)) if in_list else ParameterDict((("w", shape),))))
    return Value(Ref("self.held.0" if in_list else "self.held.w"), shape)


@st.composite
def _borrowed(draw: Draw) -> Topology:
    """A decoder that multiplies with the encoder's weight."""
    shape = draw(SMALL)
    writer = Writer(draw, shape)
    layer = Linear(shape[-1], draw(st.integers(1, 3)), draw(st.booleans()))
    code = _changed(writer, applied(writer, layer, writer.inputs[0]))
    weight = Value(Ref("self.m0.weight"), layer.parameters()["weight"])
    return finished(writer, writer.op(MatMul(), code, weight), draw(st.sampled_from([True, False])))


@st.composite
def _embedding(draw: Draw) -> Topology:
    """A language model's two ends: an Embedding, and a Linear with the same weight."""
    writer = Writer(draw)
    rows, width = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    indices = Operand(draw(SMALL)[:2], "index", rows)
    table, head = Embedding(rows, width), Linear(width, rows, draw(st.booleans()))
    (value,) = writer.call(writer.child(table), table, (writer.need(indices),), (indices,))
    value = applied(writer, head, _changed(writer, value))
    return finished(writer, [value], ties=((f"{writer.children[-1][0]}.weight", "m0.weight"),))


def _changed(writer: Writer, value: Value) -> Value:
    """``value``, or a value of the same shape made of it."""
    if not writer.draw(st.booleans()):
        return value
    return projected(writer, branch(writer, value), value.shape)
