"""no-grad-evaluation: a net with hooks is evaluated, as between two epochs of training."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import (
    DTYPES,
    SEEDS,
    Draw,
    body_of,
    chains,
    contained,
    convolutions,
    linears,
    losses,
    named,
    output_shape,
    shapes,
)
from hookcheck.topology.families.grammar import Value, Writer, layers_for
from hookcheck.topology.families.networks import Network, backed, network
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Call, Composite, Input, Module, Sequential, Topology, Within
from hookcheck.topology.primitive import Shape
from hookcheck.topology.tree import Ref

SHORTENED = ("TransformerEncoderLayer", "TransformerEncoder", "Transformer")
"""The layers that go past their children where nothing asks for gradients; programs are about that fast path."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """Evaluation alone, evaluation and then a training step, or a part of the module that switches grad back on."""
    net = draw(st.one_of(_nets(), _convolution_nets(), _any_nets()))
    mode = draw(st.sampled_from(["no_grad", "inference_mode"]))
    plain = Topology(
        net.module,
        net.arguments,
        (Within(mode, (net.call(),)),),
        training=draw(st.booleans()),
        dtype=draw(DTYPES),
        seed=draw(SEEDS),
    )
    return draw(st.one_of(st.just(plain), _then_trained(plain, net), _with_grad_inside()))


@st.composite
def _nets(draw: Draw) -> Network:
    shape = draw(shapes())
    first = draw(linears(shape[-1]))
    chain = (first, *draw(chains(output_shape(first, shape), least=0, most=2)))
    return _network(draw, draw(contained(chain)), shape, output_shape(Sequential(chain), shape))


@st.composite
def _convolution_nets(draw: Draw) -> Network:
    layer, shape = draw(convolutions())
    return _network(draw, layer, shape, output_shape(layer, shape))


@st.composite
def _any_nets(draw: Draw) -> Network:
    """A Linear, so that there is something to train, and any layers on it, or a module of them."""
    writer = Writer(draw, draw(shapes(most=4)))
    (value,) = writer.step(writer.inputs[0], (Linear,))
    if draw(st.booleans()):
        inner = Writer(draw, value.shape)
        result = _any_layers(inner, inner.inputs[0])
        value = Value(Ref(writer.inner(inner, result.ref, value)), result.shape)
    else:
        value = _any_layers(writer, value)
    return network(writer, value, requires_grad=draw(st.booleans()))


def _any_layers(writer: Writer, value: Value) -> Value:
    """One layer or two on ``value``, each on an output of that before."""
    for _ in range(writer.draw(st.integers(1, 2))):
        kinds = tuple(kind for kind in layers_for(value.shape) if kind.__name__ not in SHORTENED)
        value = writer.draw(st.sampled_from(writer.step(value, kinds)))
    return value


def _network(draw: Draw, module: Module, shape: Shape, output: Shape) -> Network:
    return Network(module, (Input("x", shape, draw(st.booleans())),), (Value(Ref("y"), output),))


@st.composite
def _then_trained(draw: Draw, evaluated: Topology, net: Network) -> Topology:
    """After the evaluation a training step on the same net, which hooks must see alone."""
    inputs, backward = backed(draw, net.named("z"))
    return replace(evaluated, inputs=(*evaluated.inputs, *inputs), main=(*evaluated.main, net.call("z"), *backward))


@st.composite
def _with_grad_inside(draw: Draw) -> Topology:
    """Under no_grad, a module that switches grad back on for its last layers; backward from its output."""
    shape = draw(shapes())
    first = draw(linears(shape[-1]))
    between = output_shape(first, shape)
    second = draw(linears(between[-1]))
    chain: tuple[Module, ...] = (first, second)
    body, last = body_of(chain)
    net = Composite(named(chain), ("x",), (*body[:1], Within("enable_grad", body[1:])), Ref(last))
    inputs, backward = draw(losses((("y", Ref("y"), output_shape(second, between)),)))
    return Topology(
        net,
        (Input("x", shape, draw(st.booleans())), *inputs),
        (Within("no_grad", (Call("y", "", (Ref("x"),)),)), *backward),
        training=draw(st.booleans()),
        dtype=draw(DTYPES),
        seed=draw(SEEDS),
    )
