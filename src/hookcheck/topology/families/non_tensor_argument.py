"""non-tensor-argument: ints, floats, strings, None and bools among the arguments, before, between and after tensors."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.calling import Argument, called, finished, plain, signed, taking
from hookcheck.topology.families.container_input import alike, combined
from hookcheck.topology.families.drawing import Draw
from hookcheck.topology.families.grammar import Value, Writer, literal
from hookcheck.topology.model import Topology
from hookcheck.topology.tree import Pack, Ref, Tree

LITERALS = st.sampled_from([None, 0, True, 2.5, "name", -1, False, ""])


@st.composite
def topologies(draw: Draw) -> Topology:
    """One or two tensors and one to three literals, some by keyword; the body drops, returns or passes on a literal."""
    inputs = alike(draw, draw(st.integers(1, 2)))
    literals = [_literal(draw, f"n{i}") for i in range(draw(st.integers(1, 3)))]
    arguments = tuple(draw(st.permutations([*literals, *plain(inputs)])))
    writer = taking(draw, arguments, inputs)
    value = combined(draw, writer, inputs)
    chosen = draw(st.sampled_from(literals))
    if draw(st.booleans()):
        value = _passed_on(draw, writer, value, chosen)
    gives: Tree = value.ref
    if draw(st.booleans()):
        gives = Pack("tuple", (value.ref, Ref(chosen.name)))
    return finished(draw, writer, gives, [value], inputs, arguments)


def _passed_on(draw: Draw, writer: Writer, value: Value, chosen: Argument) -> Value:
    """An inner module that is called with the literal and ``value``."""
    passed = (Argument("n", Ref(chosen.name)), Argument("x", value.ref))
    inner = Writer(draw, value.shape)
    last = inner.chain(inner.inputs[0], 1, 1)
    needed = tuple(writer.need(operand) for _, operand in inner.needs)
    out = writer.named()
    writer.statements.append(called(out, writer.child(signed(inner, last.ref, passed)), passed, needed))
    return Value(Ref(out), last.shape)


def _literal(draw: Draw, name: str) -> Argument:
    keyword = draw(st.sampled_from([False, False, True]))
    return Argument(name, literal(draw(LITERALS)), keyword, keyword and draw(st.booleans()))
