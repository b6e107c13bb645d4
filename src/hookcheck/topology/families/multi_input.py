"""multi-input: modules with two to four tensors as inputs, of which some may require grad and others not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.catalogue import known
from hookcheck.topology.families.drawing import Draw
from hookcheck.topology.families.fitting import that_take
from hookcheck.topology.families.grammar import Value, Writer, fitted
from hookcheck.topology.families.wiring import SMALL, finished, learned, projected
from hookcheck.topology.model import Call, Topology
from hookcheck.topology.ops import Add, Mul
from hookcheck.topology.ops.arithmetic import Sub
from hookcheck.topology.primitive import Layer, Op
from hookcheck.topology.tree import Ref

SEVERAL = (
    "MSELoss",
    "PairwiseDistance",
    "CosineSimilarity",
    "Bilinear",
    "RNNCell",
    "GRUCell",
    "LSTMCell",
    "TripletMarginLoss",
    "CosineEmbeddingLoss",
    "MultiheadAttention",
    "RNN",
    "LSTM",
    "GRU",
    "TransformerDecoderLayer",
    "L1Loss",
    "HuberLoss",
    "CrossEntropyLoss",
    "TransformerDecoder",
    "Transformer",
)
"""Layers that take more than one tensor, or may."""

Join = Callable[[Writer, Value, Value], Value]


@st.composite
def topologies(draw: Draw) -> Topology:
    """Inputs joined two by two by operations, layers and modules; some or all of them may be one tensor."""
    shape = draw(SMALL)
    same = draw(st.sampled_from([False, False, True]))
    shapes = [shape, *(shape if same else draw(SMALL) for _ in range(draw(st.integers(1, 3))))]
    writer = Writer(draw, *shapes)
    value = writer.inputs[0]
    for other in writer.inputs[1:]:
        value = draw(st.sampled_from([_by_op, _by_layer, _by_module]))(writer, value, other)
    flags = tuple(draw(st.lists(st.sampled_from([True, False]), min_size=len(shapes), max_size=len(shapes))))
    if not any(flags) or draw(st.booleans()):
        value = learned(writer, value)
    topology = finished(writer, [value], flags)
    return _passed_twice(topology) if same else topology


def _by_op(writer: Writer, left: Value, right: Value) -> Value:
    ops: list[Op] = [Add(), Mul(), Sub()]
    return writer.op(writer.draw(st.sampled_from(ops)), left, projected(writer, right, left.shape))[0]


def _by_layer(writer: Writer, left: Value, right: Value) -> Value:
    """A layer on ``left``; whatever else it needs and can have a gradient is made of ``right``."""
    kinds = that_take(known(SEVERAL), left.shape)
    if not kinds:
        return _by_op(writer, left, right)
    layer, operands = fitted(writer.draw, writer.draw(st.sampled_from(kinds)), left.shape)
    assert isinstance(layer, Layer)
    free = [i for i, operand in enumerate(operands) if operand.domain == "real" and i not in layer.constant]
    if len(free) < 2:
        left = _by_op(writer, left, right)
    refs = [
        projected(writer, right, operand.shape).ref if i in free else writer.need(operand)
        for i, operand in list(enumerate(operands))[1:]
    ]
    return writer.draw(st.sampled_from(writer.call(writer.child(layer), layer, (left.ref, *refs), operands)))


def _by_module(writer: Writer, left: Value, right: Value) -> Value:
    """A module that takes both, or twice what an operation makes of both."""
    if writer.draw(st.sampled_from([False, False, True])):
        left = right = _by_op(writer, left, right)
    inner = Writer(writer.draw, left.shape, right.shape)
    last = writer.draw(st.sampled_from([_by_op, _by_layer]))(inner, *inner.inputs)
    return Value(Ref(writer.inner(inner, last.ref, left, right)), last.shape)


def _passed_twice(topology: Topology) -> Topology:
    """The same with ``x0`` in the place of ``x1`` as well."""
    first, second, *others = topology.inputs
    call, *rest = topology.main
    assert isinstance(call, Call)
    merged = replace(first, requires_grad=first.requires_grad or second.requires_grad)
    twice = replace(call, args=(call.args[0], call.args[0], *call.args[2:]))
    return replace(topology, inputs=(merged, *others), main=(twice, *rest))
