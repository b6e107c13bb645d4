"""shared-module: one module is called several times, under one name or two, or calls itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.catalogue import known
from hookcheck.topology.families.drawing import ACTIVATIONS, Draw
from hookcheck.topology.families.fitting import that_take
from hookcheck.topology.families.grammar import FIRST, Value, Writer, fitted, layers_for, merged
from hookcheck.topology.families.wiring import SMALL, branch, ended, finished, projected
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Call, Module, ModuleList, Recurse, Topology
from hookcheck.topology.ops.joining import Cat
from hookcheck.topology.primitive import Layer, Operand, Shape
from hookcheck.topology.tree import Literal, Ref

Use = Callable[[str, Value], Value]


@st.composite
def topologies(draw: Draw) -> Topology:
    """Two or three calls of one module, or a module that calls itself."""
    return draw(st.one_of(_called_again(), _recursive()))


@st.composite
def _called_again(draw: Draw) -> Topology:
    """Each call on an input, on what is made of one, or on what a call before it gave; of the results any is used."""
    shape = draw(SMALL)
    writer = Writer(draw, *[shape] * draw(st.integers(1, 2)))
    module, use = draw(st.sampled_from([_activation, _linear, _written, _any]))(writer, shape)
    names, ties = _names(writer, module)
    values, given = list(writer.inputs), []
    for i in range(draw(st.integers(2, 3))):
        value = draw(st.sampled_from(values[::-1]))
        if draw(st.integers(0, 3)) == 3:
            value = projected(writer, branch(writer, value, 1, 1), shape)
        given.append(use(names[i % len(names)], value))
        values.append(given[-1])
    *before, last = given
    flags = (True, *(draw(st.booleans()) for _ in writer.inputs[1:])) if isinstance(module, Linear) else True
    end = draw(st.sampled_from(["last", "sum", "beside", "several"]))
    if end == "beside":
        (last,) = writer.op(Cat(-1), *given)
    elif end == "sum":
        for value in before:
            last = merged(writer, last, value)
    return finished(writer, [last, *(before if end == "several" else ())], flags, ties=ties)


def _activation(writer: Writer, shape: Shape) -> tuple[Module, Use]:
    return _layer(writer, writer.draw(ACTIVATIONS))


def _linear(writer: Writer, shape: Shape) -> tuple[Module, Use]:
    return _layer(writer, Linear(shape[-1], shape[-1], writer.draw(st.booleans())))


def _layer(writer: Writer, layer: Layer) -> tuple[Module, Use]:
    return layer, lambda name, value: writer.call(name, layer, (value.ref,), (Operand(value.shape),))[0]


def _any(writer: Writer, shape: Shape) -> tuple[Module, Use]:
    """Any layer that takes numbers of all sizes; each call is given the same of what it takes besides."""
    layer, operands = fitted(writer.draw, writer.draw(st.sampled_from(layers_for(shape))), shape)
    assert isinstance(layer, Layer)
    if operands[0].domain != "real":
        return _activation(writer, shape)
    refs = tuple(map(writer.need, operands[1:]))
    return layer, lambda name, value: projected(
        writer, writer.call(name, layer, (value.ref, *refs), operands)[0], shape
    )


def _written(writer: Writer, shape: Shape) -> tuple[Module, Use]:
    """A module of our own that keeps the shape."""
    inner = Writer(writer.draw, shape)
    last = projected(inner, inner.chain(inner.inputs[0], 1, 2), shape)
    return inner.module(last.ref), lambda name, value: Value(Ref(writer.again(name, inner, value)), shape)


def _names(writer: Writer, module: Module) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """The names under which ``module`` is called, one or two, the second perhaps deeper; and the ties that it takes."""
    first = writer.child(module)
    how = writer.draw(st.sampled_from(["one name", "two names", "one of them deeper"]))
    if how == "one name":
        return [first], ()
    second = writer.child(module) if how == "two names" else f"{writer.child(ModuleList((module,)))}.0"
    return [first, second], ((second, first),)


@st.composite
def _recursive(draw: Draw) -> Topology:
    """A module that calls itself once or twice on what it makes of its input; as the root, or inside another."""
    shape = draw(SMALL)
    inner = Writer(draw, shape)
    inner.takes.append("depth")
    kinds = that_take(known(FIRST), shape)
    (value,) = inner.inputs
    for _ in range(draw(st.integers(1, 2))):
        value = projected(inner, inner.step(value, kinds)[0], shape)
    again = inner.named()
    inner.statements.append(Recurse(again, value.ref, "depth"))
    last = Value(Ref(again), shape)
    if draw(st.booleans()):
        last = merged(inner, inner.inputs[0], last)
    depth = Literal(draw(st.integers(1, 2)))
    if draw(st.booleans()):
        outer = Writer(draw, shape)
        out = outer.named()
        outer.statements.append(Call(out, outer.child(inner.module(last.ref)), (outer.inputs[0].ref, depth)))
        return finished(outer, [Value(Ref(out), shape)])
    topology = ended(inner, last.ref, [Value(Ref("y"), shape)], True)
    return replace(topology, main=(Call("y", "", (Ref("x"), depth)), *topology.main[1:]))
