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
from hookcheck.topology.model import Call, Composite, Input, Module, Sequential, Statement, Topology, Within
from hookcheck.topology.primitive import Shape
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """Evaluation alone, evaluation and then a training step, or a part of the module that switches grad back on."""
    module, shape, output = draw(st.one_of(_nets(), _convolution_nets()))
    mode = draw(st.sampled_from(["no_grad", "inference_mode"]))
    evaluation: tuple[Statement, ...] = (Within(mode, (Call("y", "", (Ref("x"),)),)),)
    plain = Topology(
        module,
        (Input("x", shape, draw(st.booleans())),),
        evaluation,
        training=draw(st.booleans()),
        dtype=draw(DTYPES),
        seed=draw(SEEDS),
    )
    return draw(st.one_of(st.just(plain), _then_trained(plain, output), _with_grad_inside()))


@st.composite
def _nets(draw: Draw) -> tuple[Module, Shape, Shape]:
    shape = draw(shapes())
    first = draw(linears(shape[-1]))
    chain = (first, *draw(chains(output_shape(first, shape), least=0, most=2)))
    return draw(contained(chain)), shape, output_shape(Sequential(chain), shape)


@st.composite
def _convolution_nets(draw: Draw) -> tuple[Module, Shape, Shape]:
    layer, shape = draw(convolutions())
    return layer, shape, output_shape(layer, shape)


@st.composite
def _then_trained(draw: Draw, evaluated: Topology, output: Shape) -> Topology:
    """After the evaluation a training step on the same net, which hooks must see alone."""
    inputs, backward = draw(losses((("z", Ref("z"), output),)))
    main = (*evaluated.main, Call("z", "", (Ref("x"),)), *backward)
    return replace(evaluated, inputs=(*evaluated.inputs, *inputs), main=main)


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
