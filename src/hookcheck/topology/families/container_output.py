"""container-output: modules that give a list, a dict, a namedtuple, a dataclass, or tuples in tuples."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.calling import finished, plain, taking
from hookcheck.topology.families.drawing import Draw, latest, repeated, shapes
from hookcheck.topology.families.grammar import packed
from hookcheck.topology.model import Input, Topology
from hookcheck.topology.tree import Pack, Tree

KINDS = ("list", "dict", "namedtuple", "dataclass", "tuple")
KEYS = ("left", "right", "rest")


@st.composite
def topologies(draw: Draw) -> Topology:
    """One to three tensors in a container, perhaps in another one, with a loss on what is inside."""
    inputs = (Input("x", draw(shapes()), True),)
    writer = taking(draw, plain(inputs), inputs)
    values = [writer.chain(writer.inputs[0], 1, 2)]
    repeated(draw, lambda: values.append(writer.chain(latest(draw, [*writer.inputs, *values]), 1, 1)), 0, 2)
    return finished(draw, writer, container(draw, [value.ref for value in values]), values, inputs)


def container(draw: Draw, items: list[Tree]) -> Pack:
    """The items in a container, of which the first or all may lie one deeper; a tuple is never the only one."""
    kind = draw(st.sampled_from(KINDS))
    if kind == "tuple" or draw(st.booleans()):
        depth = draw(st.sampled_from([1, len(items)]))
        items = [_pack(draw(st.sampled_from(KINDS)), items[:depth]), *items[depth:]]
    return _pack(kind, items)


def _pack(kind: str, items: list[Tree]) -> Pack:
    return packed(items, kind, KEYS[: len(items)] if kind in ("dict", "namedtuple", "dataclass") else ())
