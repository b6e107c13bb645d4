"""several-losses: two or three losses on outputs and leaked intermediates, in one backward or in one each."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw, repeated, shapes
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.networks import Program, backed, network, retaining, topology
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Input, Leak, Statement, Topology
from hookcheck.topology.tree import Ref

Labelled = tuple[str, Value]
Leaked = tuple[Labelled, bool]

GRADS = st.sampled_from([True, True, False])


@st.composite
def topologies(draw: Draw) -> Topology:
    """A chain of modules that leaks what is between them and gives its end or its middle and its end, with losses."""
    writer = Writer(draw, draw(shapes()))
    values = writer.step(writer.inputs[0], (Linear,))
    leaks: list[Leaked] = []

    def step() -> None:
        leaks.append(leaked(writer, values[-1], f"h{len(leaks)}"))
        values.append(inside(writer, values[-1], leaks) if draw(st.booleans()) else writer.chain(values[-1], 1, 1))

    repeated(draw, step, 1, 2)
    net = network(writer, *draw(st.sampled_from([values[-1:], [values[-1], values[0]]])), requires_grad=draw(GRADS))
    outputs, every = [*net.named("y")], [place for place, _ in leaks]
    chosen = [*outputs, *(place for place, wanted in leaks if wanted)]
    chosen = (chosen if len(chosen) > 1 else [*outputs, *every])[: draw(st.sampled_from([3, 2]))]
    if draw(st.booleans()):
        chosen.reverse()
    inputs, losses = draw(st.sampled_from([together, one_by_one]))(draw, chosen)
    return topology(draw, net.module, (*net.arguments, *inputs), (net.call(), *losses))


def leaked(writer: Writer, value: Value, name: str) -> Leaked:
    """Leaks ``value`` under that name; gives how main sees it, and whether there is a loss on it."""
    writer.statements.append(Leak(name, value.ref))
    return (name, Value(Ref("leaked", (name,)), value.shape)), writer.draw(st.booleans())


def inside(writer: Writer, value: Value, leaks: list[Leaked]) -> Value:
    """A module of our own on ``value``, which leaks too; gives its output."""
    inner = Writer(writer.draw, value.shape)
    middle = inner.chain(inner.inputs[0], 1, 1)
    leaks.append(leaked(inner, middle, f"h{len(leaks)}"))
    last = inner.chain(middle, 0, 1)
    return Value(Ref(writer.inner(inner, last.ref, value)), last.shape)


def together(draw: Draw, places: list[Labelled]) -> Program:
    """One backward from all."""
    return backed(draw, tuple(places))


def one_by_one(draw: Draw, places: list[Labelled]) -> Program:
    """A backward each, which keeps the graph for the next."""
    inputs: list[Input] = []
    main: list[Statement] = []
    for i, place in enumerate(places):
        more, statements = backed(draw, (place,))
        inputs += more
        main += retaining(statements) if i < len(places) - 1 else statements
    return tuple(inputs), tuple(main)
