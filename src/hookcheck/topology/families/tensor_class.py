"""tensor-class: tensors that are sparse, nested, quantised, of another layout or class, as inputs, inside and outputs.

One is given to a module or made by it, and read back to a dense one behind it or inside of it; or a parameter is one,
the weight of a layer or what the network itself reads.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import SEEDS, Draw, convolutions, losses
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.layers.activation import Sigmoid, Tanh
from hookcheck.topology.layers.convolution import Conv3d
from hookcheck.topology.layers.embedding import Embedding, EmbeddingBag
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Input, Statement, Topology
from hookcheck.topology.ops.arithmetic import Mul
from hookcheck.topology.ops.tensors import AsDense, AsTensor
from hookcheck.topology.primitive import Layer, Operand, Shape
from hookcheck.topology.tensors import SPARSE_GRADIENT, TENSORS, TensorClass
from hookcheck.topology.tree import Ref

OWN = "w"
"""The name of a parameter that a network reads itself."""

PLACES = ("input", "inside", "output")
"""Where a tensor of a class is: what the net is given, what a module in it is given, or what one gives."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A class, and where a tensor of it is."""
    name = draw(st.sampled_from([*TENSORS, SPARSE_GRADIENT]))
    return embedded(draw) if name == SPARSE_GRADIENT else of_class(draw, name, TENSORS[name].ranks)


def of_class(draw: Draw, name: str, ranks: tuple[int, ...]) -> Topology:
    """A network with a tensor of that class, of one of the ``ranks``, in one of the places that it may have."""
    chosen = TENSORS[name]
    places = PLACES[:1] if chosen.leaf else PLACES
    place = draw(st.sampled_from([*places, *(["parameter"] if name != "parameter" else [])]))
    return _placed(draw, name, chosen, place, ranks)


def _placed(draw: Draw, name: str, chosen: TensorClass, place: str, ranks: tuple[int, ...]) -> Topology:
    of_layer = place == "parameter" and chosen.in_a_layer
    if place == "parameter" and 0 in chosen.ranks:
        ranks = (2,)
    layer, shape = _first(draw, ranks, 2 if of_layer and chosen.repeats else 1)
    writer = Writer(draw, shape)
    value = writer.inputs[0]
    if place in ("inside", "output"):
        inner = Writer(draw, shape)
        if place == "inside":  # made here, and given to a module
            (value,) = writer.op(AsTensor(name), value)
            end = _steps(draw, inner, layer, inner.inputs[0], name if chosen.opaque else "")
        else:  # a module gives it
            given = inner.inputs[0]
            dense = _called(inner, layer, given) if chosen.constant else _steps(draw, inner, layer, given)
            (end,) = inner.op(AsTensor(name), dense)
        value = Value(Ref(writer.inner(inner, end.ref, value)), end.shape)
    else:
        value = _steps(draw, writer, layer, value, name if chosen.opaque and place == "input" else "")
        if place == "parameter" and not of_layer:
            value = _times_parameter(writer, name, value)
    main: tuple[Statement, ...] = (Call("y", "", (Ref("x"),)),)
    read = place == "output" and bool(chosen.read)
    if read and not chosen.constant and draw(st.booleans()):  # main gets it, and reads it
        main += (Apply("z", AsDense(name), (Ref("y"),)),)
        out = "z"
    else:
        if read:
            (value,) = writer.op(AsDense(name), value)
            if chosen.constant:  # of which alone there is no gradient
                value = _called(writer, Linear(value.shape[-1], 2), value)
        if draw(st.booleans()):
            value = _called(writer, Tanh(), value)
        out = "y"
    alone = not shape and place != "parameter"  # nothing else has a gradient
    x = Input("x", shape, alone or draw(st.sampled_from([True, True, False])))
    if place == "input":
        x = replace(x, tensor=name, requires_grad=x.requires_grad and not chosen.constant)
    inputs, backward = _backed(draw, out, value.shape, chosen.dtype)
    weight = next(f"m{i}.weight" for i, (_, m) in enumerate(writer.children) if m == layer) if of_layer else OWN
    return Topology(
        writer.module(value.ref),
        (x, *inputs),
        (*main, *backward),
        training=draw(st.booleans()),
        dtype=chosen.dtype or draw(st.sampled_from(["float64", "float64", "float32"])),
        seed=draw(SEEDS),
        frozen=(weight,) if place == "parameter" and chosen.constant else (),
        classes=((weight, name),) if place == "parameter" else (),
    )


def _times_parameter(writer: Writer, name: str, value: Value) -> Value:
    """The value, times a parameter of that class that the module itself has and reads; it has its shape, or none."""
    writer.parameters.append((OWN, value.shape if TENSORS[name].opaque else ()))
    parameter = Value(Ref(f"self.{OWN}"), writer.parameters[0][1])
    if TENSORS[name].opaque:
        (parameter,) = writer.op(AsDense(name), parameter)
    return writer.op(Mul(), value, parameter)[0]


def _first(draw: Draw, ranks: tuple[int, ...], least: int) -> tuple[Layer, Shape]:
    """The layer that a tensor of one of these ranks is for, and the shape of its input; the weight of a Linear has so
    many rows at least."""
    if ranks == (0,):
        return Tanh(), ()
    if ranks == (4,):
        layer, shape = draw(convolutions())
        return layer, shape
    if ranks == (5,):
        channels = draw(st.integers(1, 2))
        return Conv3d(channels, 2, (2, 1, 2)), (2, channels, 3, 2, 2)
    rank = draw(st.sampled_from(ranks))
    shape = tuple(draw(st.lists(st.integers(2, 3), min_size=rank, max_size=rank)))
    return Linear(shape[-1], draw(st.integers(least, 3)), draw(st.booleans())), shape


def _steps(draw: Draw, writer: Writer, layer: Layer, value: Value, read: str = "") -> Value:
    """The layer on ``value``, which is read first where it must be, and perhaps an activation."""
    if read:
        (value,) = writer.op(AsDense(read), value)
    value = _called(writer, layer, value)
    return _called(writer, Sigmoid(), value) if draw(st.booleans()) else value


def _called(writer: Writer, layer: Layer, value: Value) -> Value:
    (result,) = writer.call(writer.child(layer), layer, (value.ref,), (Operand(value.shape),))
    return result


def _backed(draw: Draw, out: str, shape: Shape, dtype: str) -> tuple[tuple[Input, ...], tuple[Statement, ...]]:
    """A backward from ``out``; of complex numbers no scalar is a loss."""
    if dtype.startswith("complex"):
        return (Input("v", shape),), (Backward((Ref(out),), (Ref("v"),)),)
    return draw(losses(((out, Ref(out), shape),)))


def embedded(draw: Draw) -> Topology:
    """An Embedding or EmbeddingBag with a sparse gradient, on indices that may be repeated, and perhaps a Linear on
    it."""
    rows, width, shape = draw(st.integers(2, 4)), draw(st.integers(1, 3)), draw(st.sampled_from([(3,), (2, 2)]))
    writer = Writer(draw, shape)
    table, further = _table(draw, rows, width, shape)
    given = (writer.inputs[0].ref, *map(writer.need, further))
    (value,) = writer.call(writer.child(table), table, given, (Operand(shape, "index", rows), *further))
    if draw(st.booleans()):
        value = _called(writer, Linear(width, 2), value)
    inputs, backward = draw(losses((("y", Ref("y"), value.shape),)))
    return Topology(
        writer.module(value.ref),
        (
            Input("x", shape, domain="index", below=rows),
            *(Input(name, o.shape, False, o.domain, o.below) for name, o in writer.needs),
            *inputs,
        ),
        (Call("y", "", (Ref("x"), *(Ref(name) for name, _ in writer.needs))), *backward),
        dtype=draw(st.sampled_from(["float64", "float32"])),
        seed=draw(SEEDS),
    )


def _table(draw: Draw, rows: int, width: int, shape: Shape) -> tuple[Embedding | EmbeddingBag, tuple[Operand, ...]]:
    """The layer, and what it takes beside indices of that shape: of a bag whose indices are in one row, where each bag
    starts, and of a sum the weights of its samples."""
    if draw(st.booleans()):
        return Embedding(rows, width, sparse=True), ()
    weighted = draw(st.booleans())
    mode = "sum" if weighted else draw(st.sampled_from(["mean", "sum"]))
    starts = (Operand((2,), "offsets", shape[0]),) if len(shape) == 1 else ()
    table = EmbeddingBag(rows, width, mode=mode, weighted=weighted, sparse=True)
    return table, (*starts, *([Operand(shape)] if weighted else []))
