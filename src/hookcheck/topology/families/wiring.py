"""What do networks share that are more than a chain? Values brought to one shape, modules called, and a way to end."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import DTYPES, SEEDS, Draw, losses, output_shape
from hookcheck.topology.families.fitting import output_shapes
from hookcheck.topology.families.grammar import Value, Writer, fitted, layers_for
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Call, Module, Topology
from hookcheck.topology.ops import Mean
from hookcheck.topology.ops.views import Reshape
from hookcheck.topology.primitive import Layer, Operand, Shape, SingleStep
from hookcheck.topology.tree import Pack, Ref, Tree

SMALL = st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple)
"""Shapes of values that a Linear over all elements does not make too large."""

LARGEST = 256
"""The most weights that a projection has; of more numbers than that allows it takes the mean first."""


def applied(writer: Writer, layer: Layer, value: Value) -> Value:
    """A layer with one input, new as a child, on ``value``; gives its first output."""
    return writer.call(writer.child(layer), layer, (value.ref,), (Operand(value.shape),))[0]


def projected(writer: Writer, value: Value, shape: Shape) -> Value:
    """``value`` in that shape: as it is, its mean, or through a Linear, over all of its elements if need be."""
    if value.shape == shape:
        return value
    if not shape:
        return writer.op(Mean(), value)[0]
    if value.shape and value.shape[:-1] == shape[:-1]:
        return applied(writer, Linear(value.shape[-1], shape[-1]), value)
    if prod(value.shape) * prod(shape) > LARGEST:
        (value,) = writer.op(Mean(), value)
    (flat,) = writer.op(Reshape((prod(value.shape),)), value)
    mapped = applied(writer, Linear(prod(value.shape), prod(shape)), flat)
    return writer.op(Reshape(shape), mapped)[0]


def learned(writer: Writer, value: Value) -> Value:
    """A Linear on ``value``, after which something requires grad in any case."""
    if not value.shape:
        (value,) = writer.op(Reshape((1,)), value)
    return applied(writer, Linear(value.shape[-1], writer.draw(st.integers(1, 3))), value)


def branch(writer: Writer, value: Value, least: int = 1, most: int = 2) -> Value:
    """A chain on ``value``, its steps in the body or in a module of their own."""
    if not writer.draw(st.booleans()):
        return writer.chain(value, least, most)
    inner = Writer(writer.draw, value.shape)
    last = inner.chain(inner.inputs[0], least, most)
    return Value(Ref(writer.inner(inner, last.ref, value)), last.shape)


def called(writer: Writer, module: Module, value: Value, shape: Shape) -> Value:
    """``module``, which takes one tensor and gives one of ``shape``, new as a child and called on ``value``."""
    out = writer.named()
    writer.statements.append(Call(out, writer.child(module), (value.ref,)))
    return Value(Ref(out), shape)


def simple_layer(draw: Draw, shape: Shape) -> tuple[Layer, Shape]:
    """A layer from one tensor to one tensor, and the shape of that; a Linear where the layer drawn is not like that."""
    layer, operands = fitted(draw, draw(st.sampled_from(layers_for(shape))), shape)
    linear = Linear(shape[-1] if shape else 1, draw(st.integers(1, 3)))
    value = (Ref("x"),)
    if (
        not isinstance(layer, SingleStep)
        or len(operands) > 1
        or operands[0].domain != "real"
        or layer.call(value) != (value, ())
    ):
        return linear, output_shape(linear, shape)
    outputs = output_shapes(layer, operands)
    if layer.result((0, 1)) != 0 or len(outputs) > 1 or not 0 < prod(outputs[0][0]) <= LARGEST or not outputs[0][0]:
        return linear, output_shape(linear, shape)
    return layer, outputs[0][0]


def finished(
    writer: Writer,
    results: list[Value],
    requires_grad: bool | tuple[bool, ...] = True,
    without_loss: tuple[Value, ...] = (),
    ties: tuple[tuple[str, str], ...] = (),
) -> Topology:
    """The module that ``writer`` has written, alone or inside another, and a loss on one or all of its ``results``.

    It gives those back and, as further outputs, the ones ``without_loss``.
    """
    refs = tuple(value.ref for value in (*results, *without_loss))
    gives: Tree = refs[0] if len(refs) == 1 else Pack("tuple", refs)
    outputs = [Value(Ref("y", (i,) if len(refs) > 1 else ()), value.shape) for i, value in enumerate(results)]
    if writer.draw(st.booleans()):
        outer = Writer(writer.draw, *(value.shape for value in writer.inputs))
        gives, writer = Ref(outer.inner(writer, gives, *outer.inputs)), outer
        ties = tuple((f"m0.{target}", f"m0.{source}") for target, source in ties)
    return replace(ended(writer, gives, outputs, requires_grad), ties=ties)


def ended(writer: Writer, gives: Tree, outputs: list[Value], requires_grad: bool | tuple[bool, ...]) -> Topology:
    """The module that ``writer`` has written as the root, and a loss on one or all of those outputs of ``y``."""
    draw = writer.draw
    every, one = draw(st.booleans()), draw(st.sampled_from(outputs))
    chosen = outputs if every else [one]
    cotangents, backward = draw(losses(tuple((f"y{i}", value.ref, value.shape) for i, value in enumerate(chosen))))
    arguments = writer.arguments(requires_grad)
    return Topology(
        writer.module(gives),
        (*arguments, *cotangents),
        (Call("y", "", tuple(Ref(i.name) for i in arguments)), *backward),
        training=draw(st.sampled_from([True, True, False])),
        dtype=draw(DTYPES),
        seed=draw(SEEDS),
    )
