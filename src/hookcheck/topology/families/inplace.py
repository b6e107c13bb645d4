"""inplace: something is overwritten: inside a module, or what a module was given or has given, or a view of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from hookcheck.topology.catalogue import known
from hookcheck.topology.families.calling import finished, plain, taking
from hookcheck.topology.families.drawing import DTYPES, SEEDS, Draw, linears, losses, shapes
from hookcheck.topology.families.fitting import that_take
from hookcheck.topology.families.grammar import Value, Writer, having, merged, simple_first
from hookcheck.topology.model import Apply, Call, Input, Module, Sequential, Topology, Within
from hookcheck.topology.ops.elementwise import Neg, Scale, Shift
from hookcheck.topology.ops.inplace import ClampInplace, ReLUInplace, ScaleInplace, SigmoidInplace
from hookcheck.topology.ops.moving import Clone
from hookcheck.topology.ops.views import Detach
from hookcheck.topology.primitive import Drawn, Layer, Op, Operand, SingleStep
from hookcheck.topology.tree import Ref

AGAIN = (
    "ScaleInplace", "AddInplace", "SubInplace", "MulInplace", "MaskedFillInplace", "IndexFillInplace", "CopyInplace",
    "ZeroInplace",
)  # fmt: skip
"""The operations after which one may write again: they keep nothing of what they have written for backward."""

ONCE = ("ReLUInplace", "SigmoidInplace", "ClampInplace", "ExpInplace")

VIEWS = ("Narrow", "Select", "Index", "Unsqueeze", "Transpose", "Permute", "Squeeze")
"""Views that show each element once, so that they can be written to."""

LAYERS = tuple(kind for kind in simple_first() if hasattr(kind, "inplace"))
"""The layers that are told to work in place."""

BEFORE = having("overwritable")
"""The layers whose output may be overwritten: they do not need it for backward."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A write where nothing forbids it, or to the input, to the output or to a view of either of a module."""
    if draw(st.integers(0, 7)) == 7:
        return draw(_by_main())
    inputs = (Input("x", draw(st.one_of(shapes(), shapes(least=3, most=5))), True),)
    writer = taking(draw, plain(inputs), inputs)
    value = draw(st.sampled_from(PLACES))(draw, writer, writer.inputs[0])
    last = writer.chain(value, 0, 1)
    return finished(draw, writer, last.ref, [last], inputs)


def _inside(draw: Draw, writer: Writer, value: Value) -> Value:
    """To what an operation in this body has made."""
    return _written(draw, writer, _fresh(draw, writer, writer.chain(value, 0, 1)))


def _beside_a_view(draw: Draw, writer: Writer, value: Value) -> Value:
    """To that while there is a view of it, or to the view while there is that."""
    return _view_written(draw, writer, _fresh(draw, writer, value))


def _to_input(draw: Draw, writer: Writer, value: Value) -> Value:
    """By a module, to its argument."""
    inner = Writer(draw, value.shape)
    inside = draw(st.sampled_from([_written, _view_written]))(draw, inner, inner.inputs[0])
    return Value(Ref(writer.inner(inner, inside.ref, _fresh(draw, writer, value))), inside.shape)


def _by_layer(draw: Draw, writer: Writer, value: Value) -> Value:
    """By a layer that is told to, to what the layer before it gave, or to what an operation made."""
    value = (_given if draw(st.booleans()) else _fresh)(draw, writer, value)
    kind: type[Drawn] = draw(st.sampled_from(that_take(LAYERS, value.shape)))
    drawn: Any = kind.fitting(draw, value.shape)[0]
    layer: Layer = replace(drawn, inplace=True)
    return writer.call(writer.child(layer), layer, (value.ref,), (Operand(value.shape),))[0]


def _to_output(draw: Draw, writer: Writer, value: Value) -> Value:
    """By the caller, to what a module gave or to a view of that."""
    return draw(st.sampled_from([_written, _view_written]))(draw, writer, _given(draw, writer, value))


def _after(draw: Draw, writer: Writer, value: Value) -> Value:
    """By the caller, to what a module was given, after the call; the module has computed with it, or gives it back."""
    value = _fresh(draw, writer, value)
    inner = Writer(draw, value.shape)
    last = _fresh(draw, inner, inner.inputs[0]) if draw(st.booleans()) else inner.inputs[0]
    given = Value(Ref(writer.inner(inner, last.ref, value)), value.shape)
    written = _written(draw, writer, value)
    return merged(writer, given, written)


def _detached(draw: Draw, writer: Writer, value: Value) -> Value:
    """Past a ``detach``, so that autograd does not follow."""
    value = draw(st.sampled_from([_fresh, _given]))(draw, writer, value)
    (detached,) = writer.op(Detach(), value)
    _written(draw, writer, detached)
    return value


def _under_no_grad(draw: Draw, writer: Writer, value: Value) -> Value:
    """Under ``no_grad``, so that autograd does not follow."""
    value = draw(st.sampled_from([_fresh, _given]))(draw, writer, value)
    before = len(writer.statements)
    value = _written(draw, writer, value)
    writer.statements[before:] = [Within("no_grad", tuple(writer.statements[before:]))]
    return value


PLACES: tuple[Callable[[Draw, Writer, Value], Value], ...] = (
    _inside,
    _beside_a_view,
    _by_layer,
    _by_layer,  # twice: the commonest place, and of many layers
    _to_input,
    _to_output,
    _after,
    _detached,
    _under_no_grad,
)


def _fresh(draw: Draw, writer: Writer, value: Value) -> Value:
    """What an operation makes of ``value`` and does not need for backward."""
    return writer.op(draw(st.sampled_from([Clone(), Neg(), Scale(2.0), Shift(1.0)])), value)[0]


def _given(draw: Draw, writer: Writer, value: Value) -> Value:
    """What a module makes of ``value`` and does not need for backward."""
    kinds = that_take(BEFORE, value.shape)
    if len(kinds) > 0 and draw(st.booleans()):
        return writer.step(value, kinds)[0]
    inner = Writer(draw, value.shape)
    return Value(Ref(writer.inner(inner, _fresh(draw, inner, inner.inputs[0]).ref, value)), value.shape)


def _written(draw: Draw, writer: Writer, value: Value) -> Value:
    """``value`` once it has been written to, once or twice; the old name stands for the same tensor."""
    written = value
    for _ in range(draw(st.integers(0, 1))):
        written = _applied(draw, writer, AGAIN, written)
    written = _applied(draw, writer, (*AGAIN, *ONCE), written)
    return draw(st.sampled_from([written, value]))


def _view_written(draw: Draw, writer: Writer, value: Value) -> Value:
    """``value`` or a view of it, after one of the two has been written to."""
    view = _applied(draw, writer, VIEWS, value)
    if draw(st.booleans()):
        _written(draw, writer, value)
    else:
        view = _written(draw, writer, view)
    return draw(st.sampled_from([value, view]))


def _applied(draw: Draw, writer: Writer, names: tuple[str, ...], value: Value) -> Value:
    """One of the operations of these names on ``value``; `Writer.step` would not let it work in place."""
    op, operands = draw(st.sampled_from(that_take(known(names), value.shape))).fitting(draw, value.shape)
    assert isinstance(op, Op)
    return writer.applied(op, (value.ref, *(writer.need(operand) for operand in operands[1:])), operands)[0]


@st.composite
def _by_main(draw: Draw) -> Topology:
    """By main, to what the root gave."""
    shape = draw(shapes())
    layer: SingleStep = draw(linears(shape[-1]))
    output = (*shape[:-1], layer.parameters()["weight"][0])
    nets: list[Module] = [layer, Sequential((layer,))]
    op: Op = draw(st.sampled_from([ScaleInplace(2.0), ReLUInplace(), SigmoidInplace(), ClampInplace(-1.0, 1.0)]))
    name = draw(st.sampled_from(["z", "y"]))
    cotangents, backward = draw(losses((("y", Ref(name), output),)))
    return Topology(
        draw(st.sampled_from(nets)),
        (Input("x", shape, True), *cotangents),
        (Call("y", "", (Ref("x"),)), Apply("z", op, (Ref("y"),)), *backward),
        dtype=draw(DTYPES),
        seed=draw(SEEDS),
    )
