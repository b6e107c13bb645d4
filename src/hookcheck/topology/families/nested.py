"""nested: modules in modules, in every kind of container."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw, composed
from hookcheck.topology.families.grammar import Writer
from hookcheck.topology.families.wiring import SMALL, called, finished, simple_layer
from hookcheck.topology.model import Call, Composite, Module, ModuleDict, ModuleList, Sequential, Topology
from hookcheck.topology.primitive import Shape
from hookcheck.topology.tree import Ref

DEEPEST = 4


@st.composite
def topologies(draw: Draw) -> Topology:
    """A module to depth one to four, inside the root."""
    writer = Writer(draw, draw(SMALL))
    module, shape = _nested(draw, draw(st.integers(1, DEEPEST)), writer.inputs[0].shape)
    return finished(writer, [called(writer, module, writer.inputs[0], shape)])


def _nested(draw: Draw, depth: int, shape: Shape) -> tuple[Module, Shape]:
    """A module of that depth from one tensor to one tensor: a layer at depth 0; and the shape of what it gives."""
    if not depth:
        return simple_layer(draw, shape)
    beside = draw(st.lists(st.integers(0, min(1, depth - 1)), max_size=2))
    parts: list[Module] = []
    for below in draw(st.permutations([depth - 1, *beside])):
        part, shape = _nested(draw, below, shape)
        parts.append(part)
    return _contained(draw, tuple(parts)), shape


def _contained(draw: Draw, parts: tuple[Module, ...]) -> Module:
    """A container of ``parts`` that calls them in turn; a list and a dictionary need a module around them for that."""
    kind = draw(st.sampled_from([Sequential, Composite, ModuleList, ModuleDict]))
    if kind is Sequential:
        return Sequential(parts)
    if kind is Composite:
        return composed(parts)
    keys = [str(i) if kind is ModuleList else "abc"[i] for i in range(len(parts))]
    held = ModuleList(parts) if kind is ModuleList else ModuleDict(tuple(zip(keys, parts)))
    names = ["x", *(f"h{i}" for i in range(len(parts)))]
    body = tuple(Call(out, f"held.{key}", (Ref(value),)) for key, value, out in zip(keys, names, names[1:]))
    return Composite((("held", held),), ("x",), body, Ref(names[-1]))
