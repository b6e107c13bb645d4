"""residual: what a block makes of its input is added to that input, or laid beside it."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import ACTIVATIONS, Draw, repeated
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.wiring import SMALL, applied, branch, called, finished, projected
from hookcheck.topology.model import Sequential, Topology
from hookcheck.topology.ops import Add, Mul
from hookcheck.topology.ops.elementwise import Scale
from hookcheck.topology.ops.joining import Cat
from hookcheck.topology.primitive import Op, Shape
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """One to three blocks, each a module: the root, called one after the other, or inside ``nn.Sequential``."""
    shape = draw(SMALL)
    how = draw(st.sampled_from(["alone", "called", "in Sequential"]))
    blocks: list[tuple[Writer, Value]] = []
    repeated(draw, lambda: blocks.append(_block(draw, blocks[-1][1].shape if blocks else shape)), 1, 3)
    if how == "alone" and len(blocks) == 1:
        return finished(blocks[0][0], [blocks[0][1]])
    writer = Writer(draw, shape)
    value = writer.inputs[0]
    if how != "in Sequential" or any(block.needs for block, _ in blocks):
        for block, last in blocks:
            value = Value(Ref(writer.inner(block, last.ref, value)), last.shape)
    else:
        net = Sequential(tuple(block.module(last.ref) for block, last in blocks))
        value = called(writer, net, value, blocks[-1][1].shape)
    return finished(writer, [value])


def _block(draw: Draw, shape: Shape) -> tuple[Writer, Value]:
    """``x + f(x)``: perhaps an activation before or after, ``f(x)`` scaled, or a projection on the skip path."""
    writer = Writer(draw, shape)
    (x,) = writer.inputs
    activation = draw(st.sampled_from(["none", "before", "after"]))
    start = applied(writer, draw(ACTIVATIONS), x) if activation == "before" else x
    branched = _scaled(writer, branch(writer, start))
    if draw(st.booleans()):
        skip = projected(writer, x, branched.shape)
    else:
        skip, branched = x, projected(writer, branched, shape)
    merge: Op = draw(st.sampled_from([Add(), Add(), Cat(-1)]))
    pair = draw(st.sampled_from([(skip, branched), (branched, skip)]))
    (y,) = writer.op(merge if branched.shape else Add(), *pair)
    return writer, applied(writer, draw(ACTIVATIONS), y) if activation == "after" else y


def _scaled(writer: Writer, value: Value) -> Value:
    """``value``, times a number or a parameter, or as it is."""
    how = writer.draw(st.sampled_from(["as it is", "by a number", "by a parameter"]))
    if how == "by a parameter":
        writer.parameters.append(("scale", value.shape[-1:]))
        (value,) = writer.op(Mul(), value, Value(Ref("self.scale"), value.shape[-1:]))
    elif how == "by a number":
        (value,) = writer.op(Scale(0.5), value)
    return value
