"""container-input: tensors that are passed inside a tuple, a list or a dict."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.calling import Argument, finished, taking
from hookcheck.topology.families.drawing import Draw, shapes
from hookcheck.topology.families.grammar import Value, Writer, packed
from hookcheck.topology.model import Input, Topology
from hookcheck.topology.ops import Add, Mul
from hookcheck.topology.ops.arithmetic import Sub
from hookcheck.topology.tree import Pack, Ref, Tree

KINDS = ("tuple", "list", "dict")


@st.composite
def topologies(draw: Draw) -> Topology:
    """A container of one to three tensors, by position or by keyword, alone or beside a plain tensor."""
    inputs = alike(draw, draw(st.integers(1, 4)))
    names = [Ref(i.name) for i in inputs]
    plain = draw(st.integers(0, 1)) if len(inputs) > 1 else 0
    keyword = draw(st.booleans())
    held = Argument("c", _container(draw, list(names[plain:])), keyword, keyword and draw(st.booleans()))
    beside = [Argument("x", name) for name in names[:plain]]
    arguments = tuple(draw(st.permutations([held, *beside])))
    writer = taking(draw, arguments, inputs)
    value = combined(draw, writer, inputs)
    return finished(draw, writer, value.ref, [value], inputs, arguments)


def _container(draw: Draw, items: list[Tree]) -> Pack:
    """The items in a container, of which the first ones may lie one deeper."""
    if draw(st.booleans()):
        depth = draw(st.integers(1, len(items)))
        items = [_pack(draw, items[:depth]), *items[depth:]]
    return _pack(draw, items)


def _pack(draw: Draw, items: list[Tree]) -> Pack:
    kind = draw(st.sampled_from(KINDS))
    return packed(items, kind, ("p", "q", "r", "s")[: len(items)] if kind == "dict" else ())


def alike(draw: Draw, count: int) -> tuple[Input, ...]:
    """Inputs of one shape, of which one at least requires grad."""
    shape = draw(shapes())
    live = draw(st.integers(0, count - 1))
    return tuple(Input(f"x{i}", shape, i == live or not draw(st.booleans())) for i in range(count))


def combined(draw: Draw, writer: Writer, inputs: tuple[Input, ...]) -> Value:
    """What a module makes of tensors of one shape: it uses those that may be needed for a gradient, others perhaps."""
    order = sorted(zip(inputs, writer.inputs), key=lambda pair: not pair[0].requires_grad)
    value, *others = (value for _, value in order)
    for other in others:
        if draw(st.sampled_from([True, True, False])):
            (value,) = writer.op(draw(st.sampled_from([Add(), Mul(), Sub()])), value, other)
    return writer.chain(value, 1, 2)
