"""view: modules whose input or output shares memory with another tensor, and modules that make views alone."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.catalogue import known
from hookcheck.topology.families.calling import finished, plain, taking
from hookcheck.topology.families.drawing import Draw, shapes
from hookcheck.topology.families.fitting import that_take
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.model import Input, Topology
from hookcheck.topology.tree import Pack, Ref

VIEWS = (
    "Unsqueeze", "Transpose", "Permute", "Narrow", "Select", "Index", "Expand", "Squeeze", "Reshape",
    "Unbind", "Split", "Chunk",
)  # fmt: skip
"""The views of any tensor; ``view`` itself needs one whose memory is in order, such as an input."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """Steps, views of what they give, and steps on those; the views in a module of their own or between modules."""
    inputs = (Input("x", draw(shapes(most=4)), True),)
    writer = taking(draw, plain(inputs), inputs)
    start = writer.chain(writer.inputs[0], 0, 1)
    fresh = start is writer.inputs[0]
    value = _apart(draw, writer, start) if draw(st.booleans()) else _viewed(draw, writer, start, fresh)
    end = writer.chain(value, 0, 1)
    if not draw(st.booleans()):
        return finished(draw, writer, end.ref, [end], inputs)
    other = draw(st.sampled_from([value, start, writer.inputs[0]]))
    return finished(draw, writer, Pack("tuple", (end.ref, other.ref)), [end, other], inputs)


def _apart(draw: Draw, writer: Writer, value: Value) -> Value:
    """One or two views of ``value``, made by a module that makes nothing else."""
    inner = Writer(draw, value.shape)
    last = _viewed(draw, inner, inner.inputs[0], False)
    return Value(Ref(writer.inner(inner, last.ref, value)), last.shape)


def _viewed(draw: Draw, writer: Writer, value: Value, ordered: bool) -> Value:
    """A view of ``value``, or a view of a view."""
    for number in range(draw(st.integers(1, 2))):
        names = [*VIEWS[:1], *(["View"] * 2 if ordered and not number else []), *VIEWS[1:]]
        kinds = that_take(known(names), value.shape)
        value = draw(st.sampled_from(writer.step(value, kinds)))
    return value
