"""Layers without the batch axis: drawn, said to be so, and computed as a batch of one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from hookcheck.topology.catalogue import layer_classes
from hookcheck.topology.codec import decode, encode
from hookcheck.topology.families.fitting import ranks
from hookcheck.topology.layers.attention import MultiheadAttention
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.max_pool import MaxPool1d, MaxPool2d
from hookcheck.topology.layers.padding import ConstantPad1d, ReflectionPad1d
from hookcheck.topology.layers.recurrent import LSTM
from hookcheck.topology.layers.transposed import ConvTranspose1d
from hookcheck.topology.model import Backward, Call, Input, Topology
from hookcheck.topology.needs import needs
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import draw

FIRST = settings(database=None, derandomize=True, max_examples=1, phases=[Phase.generate])
KINDS = [kind for kind in layer_classes().values() if issubclass(kind, Batched) and kind.__name__ != "NLLLoss2d"]


def test_the_commonest_layers_are_among_them() -> None:
    names = {kind.__name__ for kind in KINDS}
    assert {"Conv1d", "ConvTranspose3d", "MaxPool2d", "LSTM", "GRUCell", "MultiheadAttention"} < names


@pytest.mark.parametrize("unbatched", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_number_of_dimensions_says_whether_there_is_a_batch(kind: type[Batched], unbatched: bool) -> None:
    rank = (min if unbatched else max)(ranks(kind))
    drawn = st.composite(lambda draw: kind.fitting(draw, (4,) * rank))()
    layer, operands = find(drawn, lambda _: True, settings=FIRST)
    assert isinstance(layer, Batched)
    assert layer.unbatched is unbatched
    assert len(operands[0].shape) == rank
    assert bool(layer.unbatched_since) is unbatched
    assert "unbatched" not in layer.source()


def test_a_sample_is_computed_as_a_batch_of_one() -> None:
    settings = (2, 2, (2, 1))
    x, v = draw(0, "x", (2, 3, 3)), draw(0, "v", (2, 2, 3))
    parameters = {name: draw(0, name, shape) for name, shape in Conv2d(*settings).parameters().items()}
    batch, sample = Conv2d(*settings), Conv2d(*settings, unbatched=True)
    (y,), (of_batch,) = sample.forward((x,), parameters), batch.forward((x[None],), parameters)
    assert np.array_equal(y[None], of_batch)
    (dx,), gradients = sample.vjp((x,), parameters, (v,))
    (dx_of_batch,), gradients_of_batch = batch.vjp((x[None],), parameters, (v[None],))
    assert np.array_equal(dx[None], dx_of_batch)
    assert all(np.array_equal(gradients[name], gradients_of_batch[name]) for name in parameters)


@pytest.mark.parametrize(("batch_first", "axis"), [(False, 1), (True, 0)])
def test_a_sequence_lacks_the_axis_that_the_layer_has_the_batch_in(batch_first: bool, axis: int) -> None:
    lstm = LSTM(3, 2, batch_first=batch_first, state=True, unbatched=True)
    x, h, c = draw(0, "x", (4, 3)), draw(0, "h", (1, 2)), draw(0, "c", (1, 2))
    parameters = {name: draw(0, name, shape) for name, shape in lstm.parameters().items()}
    assert [t.shape for t in lstm.batched((x, h, c), lstm.axes_in(3))] == [
        np.expand_dims(x, axis).shape,
        (1, 1, 2),
        (1, 1, 2),
    ]
    assert [t.shape for t in lstm.forward((x, h, c), parameters)] == [(4, 2), (1, 2), (1, 2)]


def test_a_mask_of_heads_stays_and_one_of_padding_lacks_the_batch() -> None:
    attention = MultiheadAttention(
        4, 2, sources=1, attn_mask="float", key_padding_mask="float", unbatched=True, average_attn_weights=False
    )
    inputs = draw(0, "x", (3, 4)), draw(0, "m", (2, 3, 3)), draw(0, "p", (3,))
    parameters = {name: draw(0, name, shape) for name, shape in attention.parameters().items()}
    assert [t.shape for t in attention.batched(inputs, attention.axes_in(3))] == [(3, 1, 4), (2, 3, 3), (1, 3)]
    assert [t.shape for t in attention.forward(inputs, parameters)] == [(3, 4), (2, 3, 3)]
    thrice = (inputs[0],) * 3 + inputs[1:]  # as a call has it
    assert [t.shape for t in attention.forward(thrice, parameters)] == [(3, 4), (2, 3, 3)]


def test_the_release_that_takes_a_sample_is_told() -> None:
    assert Conv2d(1, 1, (1, 1)).unbatched_since == ""
    assert Conv2d(1, 1, (1, 1), unbatched=True).unbatched_since == "1.11"
    assert (MaxPool1d(1, unbatched=True).unbatched_since, MaxPool2d(1, unbatched=True).unbatched_since) == (
        "1.11",
        "1.8",
    )
    assert (
        ConstantPad1d(1, 0.5, unbatched=True).unbatched_since,
        ReflectionPad1d(1, unbatched=True).unbatched_since,
    ) == ("1.8", "1.10")
    assert ConvTranspose1d(1, 1, (1,), unbatched=True).unbatched_since == "1.11"
    assert ConvTranspose1d(1, 1, (1,), output_size=(2,), unbatched=True).unbatched_since == "1.12"


def of_layer(layer: Conv2d) -> Topology:
    cotangent = Input("v", (1, 2, 2))
    main = (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),)))
    return Topology(layer, (Input("x", (1, 2, 2), True), cotangent), main)


def test_a_topology_needs_that_release() -> None:
    assert needs(of_layer(Conv2d(1, 1, (1, 1)))) == ("1.7", "Conv2d")
    assert needs(of_layer(Conv2d(1, 1, (1, 1), unbatched=True))) == ("1.11", "Conv2d without a batch axis")


def test_what_was_written_before_has_a_batch() -> None:
    topology = of_layer(Conv2d(1, 1, (1, 1), unbatched=True))
    written = json.loads(json.dumps(encode(topology)))
    assert decode(written) == topology
    assert written["module"].pop("unbatched") is True
    assert decode(written) == of_layer(Conv2d(1, 1, (1, 1)))
