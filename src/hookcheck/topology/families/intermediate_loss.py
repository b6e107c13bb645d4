"""intermediate-loss: backward from a tensor made inside a module, which is no output of it."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import (
    DTYPES,
    SEEDS,
    Draw,
    body_of,
    chains,
    linears,
    losses,
    named,
    output_shape,
    shapes,
)
from hookcheck.topology.model import Call, Composite, Input, Leak, Module, Sequential, Statement, Topology
from hookcheck.topology.primitive import Shape
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """A module that leaks one of its intermediates, perhaps from deep inside, and a loss on that or on both ends."""
    shape = draw(shapes())
    first = draw(linears(shape[-1]))
    before = (first, *draw(chains(output_shape(first, shape), least=0, most=1)))
    leaked = output_shape(Sequential(before), shape)
    after = draw(chains(leaked, least=1, most=2))
    net: Module = _leaking(before, after)
    output = output_shape(Sequential(after), leaked)
    for _ in range(draw(st.integers(0, 2))):
        net, output = draw(_wrapped(net, output))
    where: list[tuple[str, Ref, Shape]] = [("h", Ref("leaked", ("h",)), leaked)]
    if draw(st.booleans()):
        where.append(("y", Ref("y"), output))
    inputs, backward = draw(losses(tuple(where)))
    return Topology(
        net,
        (Input("x", shape, draw(st.sampled_from([True, True, False]))), *inputs),
        (Call("y", "", (Ref("x"),)), *backward),
        dtype=draw(DTYPES),
        seed=draw(SEEDS),
    )


def _leaking(before: tuple[Module, ...], after: tuple[Module, ...]) -> Composite:
    """A module that leaks what it has between ``before`` and ``after``."""
    body, last = body_of((*before, *after))
    cut = len(before)
    leak: Statement = Leak("h", Ref(f"h{cut - 1}"))
    return Composite(named((*before, *after)), ("x",), (*body[:cut], leak, *body[cut:]), Ref(last))


@st.composite
def _wrapped(draw: Draw, inner: Module, output: Shape) -> tuple[Module, Shape]:
    """``inner`` inside another module, with or without a layer after it."""
    after = draw(chains(output, least=0, most=1))
    body, last = body_of((inner, *after))
    return Composite(named((inner, *after)), ("x",), body, Ref(last)), output_shape(Sequential(after), output)
