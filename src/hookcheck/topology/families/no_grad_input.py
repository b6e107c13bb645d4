"""no-grad-input: modules of which no input, or not every input, requires grad; frozen modules."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import (
    DTYPES,
    SEEDS,
    Draw,
    chains,
    contained,
    convolutions,
    linears,
    losses,
    named,
    output_shape,
    shapes,
    trained,
)
from hookcheck.topology.families.grammar import Writer
from hookcheck.topology.families.networks import backed, network, topology
from hookcheck.topology.layers.embedding import Embedding
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Call, Composite, Input, Sequential, Topology
from hookcheck.topology.ops import Add
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """One of the ways in which an input can be without gradient."""
    return draw(st.one_of(_data_only(), _convolution(), _beside_another(), _frozen_stem(), _looked_up()))


@st.composite
def _data_only(draw: Draw) -> Topology:
    """The first layers of a net on plain data."""
    shape = draw(shapes())
    first = draw(linears(shape[-1]))
    chain = (first, *draw(chains(output_shape(first, shape), least=0, most=2)))
    output = output_shape(Sequential(chain), shape)
    return draw(trained(draw(contained(chain)), shape, output, requires_grad=False))


@st.composite
def _convolution(draw: Draw) -> Topology:
    layer, shape = draw(convolutions())
    return draw(trained(layer, shape, output_shape(layer, shape), requires_grad=False))


@st.composite
def _looked_up(draw: Draw) -> Topology:
    """Indices, which an Embedding turns into vectors, and any layers on those, as in models of language."""
    writer = Writer(draw)
    layer, (indices,) = Embedding.fitting(draw, draw(shapes(most=2)))
    assert isinstance(layer, Embedding)
    (value,) = writer.call(writer.child(layer), layer, (writer.need(indices),), (indices,))
    net = network(writer, writer.chain(value, 1, 2))
    inputs, backward = backed(draw, net.named("y"))
    return topology(draw, net.module, (*net.arguments, *inputs), (net.call(), *backward))


@st.composite
def _beside_another(draw: Draw) -> Topology:
    """Two inputs, each through a Linear of its own, added; at most one of them requires grad."""
    left, right = draw(shapes(least=2, most=2)), draw(st.integers(1, 4))
    width = draw(st.integers(1, 4))
    chain = (Linear(left[1], width, draw(st.booleans())), Linear(right, width, draw(st.booleans())))
    net = Composite(
        named(chain),
        ("a", "b"),
        (Call("p", "m0", (Ref("a"),)), Call("q", "m1", (Ref("b"),)), Apply("s", Add(), (Ref("p"), Ref("q")))),
        Ref("s"),
    )
    grads = draw(st.sampled_from([(True, False), (False, True), (False, False)]))
    inputs, backward = draw(losses((("y", Ref("y"), (left[0], width)),)))
    return Topology(
        net,
        (Input("a", left, grads[0]), Input("b", (left[0], right), grads[1]), *inputs),
        (Call("y", "", (Ref("a"), Ref("b"))), *backward),
        dtype=draw(DTYPES),
        seed=draw(SEEDS),
    )


@st.composite
def _frozen_stem(draw: Draw) -> Topology:
    """A frozen first layer on plain data: none of its outputs requires grad, and the layer after it has plain input."""
    shape = draw(shapes())
    stem = draw(linears(shape[-1]))
    head = draw(linears(stem.out_features))
    module = draw(contained((stem, head)))
    prefix = _path_of_first(module)
    plain = draw(trained(module, shape, output_shape(Sequential((stem, head)), shape), requires_grad=False))
    return replace(plain, frozen=tuple(f"{prefix}.{name}" for name in stem.parameters()))


def _path_of_first(module: object) -> str:
    """The dotted path of the first layer in what `contained` made of a chain of two."""
    path = []
    while isinstance(module, (Composite, Sequential)):
        first = module.children[0]
        name, module = first if isinstance(module, Composite) else ("0", first)  # type: ignore[misc]
        path.append(name)
    return ".".join(path)
