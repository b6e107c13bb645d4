"""unused-input: forward leaves one of its inputs alone."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw
from hookcheck.topology.families.grammar import Value, Writer, merged
from hookcheck.topology.families.wiring import SMALL, branch, finished, learned, projected
from hookcheck.topology.model import Topology
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """A module that leaves an input alone, as the root, or inside one that makes that input, or uses it elsewhere."""
    shapes = draw(st.lists(SMALL, min_size=2, max_size=3))
    flags = tuple(draw(st.lists(st.sampled_from([True, False]), min_size=len(shapes), max_size=len(shapes))))
    unused = draw(st.sampled_from(range(len(shapes))[::-1]))
    inner = Writer(draw, *shapes)
    used = [value for i, value in enumerate(inner.inputs) if i != unused]
    value, *others = [branch(inner, each) for each in used]
    for other in others:
        value = merged(inner, value, projected(inner, other, value.shape))
    if not any(flag for i, flag in enumerate(flags) if i != unused):
        value = learned(inner, value)
    if not draw(st.booleans()):
        return finished(inner, [value], flags)
    outer = Writer(draw, *shapes)
    given = [_learned_of(outer, each) for each in outer.inputs]
    last = Value(Ref(outer.inner(inner, value.ref, *given)), value.shape)
    if draw(st.booleans()):
        last = merged(outer, last, projected(outer, given[unused], last.shape))
    return finished(outer, [last], flags)


def _learned_of(writer: Writer, value: Value) -> Value:
    """``value``, or one of the same shape made of it: by parameters, so that these are what gets no gradient."""
    if not writer.draw(st.booleans()):
        return value
    return projected(writer, learned(writer, value), value.shape)
