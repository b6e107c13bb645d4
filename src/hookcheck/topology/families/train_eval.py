"""train-eval: training and evaluation in one program, with running statistics and dropout, each in its own mode."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.catalogue import known
from hookcheck.topology.families.drawing import WIDTHS, Draw
from hookcheck.topology.families.fitting import that_take
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.networks import Network, backed, network, topology
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Input, Statement, Topology, Train, Within
from hookcheck.topology.tree import Ref

KINDS = (
    "BatchNorm1d", "Dropout", "InstanceNorm1d", "BatchNorm2d", "InstanceNorm2d", "Dropout2d", "AlphaDropout", "RReLU",
    "Dropout1d", "BatchNorm3d", "InstanceNorm3d", "Dropout3d", "FeatureAlphaDropout",
)  # fmt: skip
"""The layers whose training differs from their evaluation, simple ones first."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """Two to four steps, each in a mode of its own: a training step, an evaluation under no_grad, or a backward in
    eval mode; a layer may stay in eval mode while the net trains."""
    net, paths = draw(nets())
    inputs: list[Input] = []
    main: list[Statement] = []
    for i in range(draw(st.integers(2, 4))):
        training = draw(st.booleans()) if i else True
        main += [Train("", training)] if i else draw(st.sampled_from([[], [Train()]]))
        if training:
            main += draw(st.sampled_from([[], [Train(draw(st.sampled_from(paths)), False)]]))
        step = net.elsewhere(f"_{i}") if i and draw(st.booleans()) else net
        inputs += step.arguments
        if i and not training and draw(st.booleans()):
            main.append(Within("no_grad", (step.call(f"y{i}_"),)))
            continue
        more, backward = backed(draw, net.named(f"y{i}_"))
        inputs += more
        main += (step.call(f"y{i}_"), *backward)
    return topology(draw, net.module, tuple(inputs), tuple(main), training=True)


@st.composite
def nets(draw: Draw) -> tuple[Network, tuple[str, ...]]:
    """A net with one or two such layers, each perhaps in a module inside, and the paths of these layers."""
    spatial = draw(st.lists(st.integers(2, 3), max_size=3))
    writer = Writer(draw, (draw(st.integers(2, 3)), draw(WIDTHS), *spatial))
    value, paths = writer.inputs[0], []
    for _ in range(draw(st.integers(1, 2))):
        if draw(st.booleans()):
            inner = Writer(draw, value.shape)
            result, path = switching(draw, inner, inner.inputs[0])
            value = Value(Ref(writer.inner(inner, result.ref, value)), result.shape)
            paths.append(f"{writer.children[-1][0]}.{path}")
        else:
            value, path = switching(draw, writer, value)
            paths.append(path)
    return network(writer, value), tuple(paths)


def switching(draw: Draw, writer: Writer, value: Value) -> tuple[Value, str]:
    """A Linear or nothing, then one of the layers, on ``value``; gives its output and its path."""
    if draw(st.booleans()):
        (value,) = writer.step(value, (Linear,))
    (value,) = writer.step(value, that_take(known(KINDS), value.shape))
    return value, writer.children[-1][0]
