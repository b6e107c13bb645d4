"""frozen-parameters: some or all parameters do not require grad: single ones, biases, whole layers, the whole net."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw, shapes
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.networks import backed, graphed, network, topology
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Topology
from hookcheck.topology.ops.views import Unsqueeze
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """A Linear, any steps, and another Linear, perhaps as one child of the root, with a part of it frozen."""
    shape = draw(shapes())
    writer = Writer(draw, shape)
    (value,) = writer.step(writer.inputs[0], (Linear,))
    value = draw(st.sampled_from(graphed(draw, writer, value))) if draw(st.booleans()) else writer.chain(value, 0, 1)
    (last,) = writer.step(value if value.shape else writer.op(Unsqueeze(0), value)[0], (Linear,))
    ends = {"m0", writer.children[-1][0]}
    if draw(st.booleans()):
        inner, writer = writer, Writer(draw, shape)
        last = Value(Ref(writer.inner(inner, last.ref, writer.inputs[0])), last.shape)
        ends = {f"m0.{end}" for end in ends}
    net = network(writer, last)
    frozen = draw(_parts(net.parameters))
    trained = {name.rpartition(".")[0] for name in net.parameters if name not in frozen}
    arguments = writer.arguments(draw(st.sampled_from([True, False] if trained & ends else [True])))
    inputs, backward = backed(draw, net.named("y"))
    return topology(draw, net.module, (*arguments, *inputs), (net.call(), *backward), frozen=frozen)


@st.composite
def _parts(draw: Draw, names: tuple[str, ...]) -> tuple[str, ...]:
    """Which of the parameters are frozen."""
    owners = tuple(dict.fromkeys(name.rpartition(".")[0] for name in names))
    biases = [tuple(n for n in names if n.endswith("bias") is flag) for flag in (True, False)]
    layer = draw(st.sampled_from(owners))
    choices = [
        (draw(st.sampled_from(names)),),
        tuple(name for name in names if name.rpartition(".")[0] == layer),
        tuple(name for name in names if name.rpartition(".")[0] != layer),
        *biases,
        names,
    ]
    return draw(st.sampled_from([choice for choice in choices if choice]))
