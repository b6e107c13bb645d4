"""multi-output: modules that give several tensors, some unused, repeated, detached or integer, and other things."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from hookcheck.topology.catalogue import known
from hookcheck.topology.families.calling import finished, plain, taking
from hookcheck.topology.families.drawing import Draw, latest, repeated, shapes
from hookcheck.topology.families.fitting import shapes_for
from hookcheck.topology.families.grammar import Value, Writer, fitted, literal
from hookcheck.topology.model import Input, Topology
from hookcheck.topology.ops.views import Detach
from hookcheck.topology.primitive import Drawn, Layer, Op
from hookcheck.topology.tree import Pack, Ref, Tree

SEVERAL = {
    "views": ("Unbind", "Split", "Chunk"),
    "values and indices": ("MaxOver", "MaxPool1d", "MaxPool2d", "AdaptiveMaxPool2d"),
    "outputs and states": ("LSTM", "GRU", "RNN", "LSTMCell"),
    "outputs and weights": ("MultiheadAttention",),
}
"""The operations and layers that give several outputs, by what those are."""

LITERALS = st.sampled_from([None, 0, True, 2.5, "name"])


@st.composite
def topologies(draw: Draw) -> Topology:
    """Tensors and others side by side, or all that one step gives."""
    return draw(st.one_of(_side_by_side(), _of_one_step()))


@st.composite
def _side_by_side(draw: Draw) -> Topology:
    """Two or three outputs of what a short program has, and things that backward does not reach among them."""
    inputs = (Input("x", draw(shapes()), True),)
    writer = taking(draw, plain(inputs), inputs)
    values = [writer.inputs[0]]
    repeated(draw, lambda: values.append(writer.chain(latest(draw, values), 1, 1)), 1, 2)
    items: list[Tree] = [values[-1].ref, draw(st.sampled_from(values)).ref]
    if draw(st.booleans()):
        items.append(draw(st.sampled_from(values)).ref)
    if draw(st.booleans()):
        (detached,) = writer.op(Detach(), draw(st.sampled_from(values)))
        items.insert(draw(st.integers(0, len(items))), detached.ref)
    for _ in range(draw(st.integers(0, 3))):
        items.insert(*_elsewhere(draw, items))
    return finished(draw, writer, Pack("tuple", tuple(items)), values, inputs)


def _elsewhere(draw: Draw, items: list[Tree]) -> tuple[int, Tree]:
    """A place and a literal; never a string in front, in which the legacy hook would look for a tensor forever."""
    value = draw(LITERALS)
    return draw(st.integers(1 if isinstance(value, str) else 0, len(items))), literal(value)


@st.composite
def _of_one_step(draw: Draw) -> Topology:
    """What an operation or a layer with several outputs gives, as it is or taken apart."""
    what = draw(st.sampled_from(list(SEVERAL)))
    (kind,) = known([draw(st.sampled_from(SEVERAL[what]))])
    inputs = (Input("x", draw(shapes_for(kind)), True),)
    writer = taking(draw, plain(inputs), inputs)
    whole, values = _stepped(draw, writer, kind, writer.inputs[0])
    parts = [value.ref for value in values]
    indices = [Ref(whole.name, (1,))] if what == "values and indices" else []
    gives: Tree = whole
    if draw(st.booleans()):
        gives = Pack("tuple", tuple(draw(st.permutations([*parts, *indices]))))
    return finished(draw, writer, gives, values, inputs)


def _stepped(draw: Draw, writer: Writer, kind: type[Drawn], value: Value) -> tuple[Ref, list[Value]]:
    """A step of ``kind`` on ``value`` that gives several outputs: all of what it gives, and the real tensors in it."""
    step: Any
    step, operands = fitted(draw, kind, value.shape)
    if "MaxPool" in kind.__name__:
        step = replace(step, return_indices=True)
    refs = (value.ref, *(writer.need(operand) for operand in operands[1:]))
    if isinstance(step, Op):
        values = writer.applied(step, refs, operands)
    else:
        assert isinstance(step, Layer)
        values = writer.call(writer.child(step), step, refs, operands)
    return Ref(values[0].ref.name), values
