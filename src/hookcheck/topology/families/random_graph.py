"""random-graph: anything that the grammar allows, modules in modules, values used more than once."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import DTYPES, SEEDS, Draw, latest, losses, repeated, shapes
from hookcheck.topology.families.grammar import Value, Writer, merged
from hookcheck.topology.model import Call, Topology
from hookcheck.topology.tree import Pack, Ref, Tree


@st.composite
def written(draw: Draw, depth: int, *given: Value) -> tuple[Writer, Tree, list[tuple[Ref, Value]]]:
    """A module on values of such shapes, what it gives, and each output by where it lies in that.

    A strategy of its own, so that shrinking can put a module inside it in its place.
    """
    writer = Writer(draw, *(value.shape for value in given))
    values = list(writer.inputs)

    def step() -> None:
        value = latest(draw, values)
        partners = [other for other in values if other.shape == value.shape and other is not value]
        nests, merges = draw(st.integers(0, 2)) == 2, draw(st.booleans())
        if depth and nests:
            inner, gives, outputs = draw(written(depth - 1, value))
            name = writer.inner(inner, gives, value)
            values.extend(Value(Ref(name, ref.path), output.shape) for ref, output in outputs)
        elif partners and merges:
            values.append(merged(writer, value, latest(draw, partners)))
        else:
            values.append(writer.chain(value, 1, 2))

    repeated(draw, step, 1, 4)
    *others, last = values
    if not draw(st.booleans()):
        return writer, last.ref, [(Ref("y"), last)]
    second = latest(draw, others)
    return writer, Pack("tuple", (last.ref, second.ref)), [(Ref("y", (0,)), last), (Ref("y", (1,)), second)]


@st.composite
def topologies(draw: Draw) -> Topology:
    """A module to depth three, with one or two outputs, and a loss on one or both of them."""
    shape = draw(shapes(least=1, most=4))
    writer, gives, outputs = draw(written(draw(st.integers(0, 2)), Value(Ref("x"), shape)))
    chosen = outputs if draw(st.booleans()) else outputs[:1]
    inputs, backward = draw(losses(tuple((f"y{i}", ref, value.shape) for i, (ref, value) in enumerate(chosen))))
    arguments = writer.arguments()
    return Topology(
        writer.module(gives),
        (*arguments, *inputs),
        (Call("y", "", tuple(Ref(i.name) for i in arguments)), *backward),
        training=draw(st.sampled_from([True, True, False])),
        dtype=draw(DTYPES),
        seed=draw(SEEDS),
    )
