"""Attention on numbers that can be checked in the head: queries are 0, so that all keys that count weigh the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.layers.attention import MultiheadAttention
from hookcheck.topology.primitive import Array
from hookcheck.topology.tree import Literal, Ref

PLAIN = MultiheadAttention(1, 1, bias=False)
KEYS = np.array([[[1.0]], [[3.0]]])
INPUTS = (np.ones((1, 1, 1)), KEYS, KEYS)


def parameters(layer: MultiheadAttention) -> dict[str, Array]:
    """Queries and keys become 0, values and outputs stay as they are; appended are key 7 and value 5."""
    e = layer.embed_dim
    arrays = {name: np.zeros(shape) for name, shape in layer.parameters().items()}
    arrays["in_proj_weight"][2 * e :] = np.eye(e)
    arrays["out_proj.weight"][:] = np.eye(e)
    if layer.add_bias_kv:
        arrays["bias_k"] += 7
        arrays["bias_v"] += 5
    return arrays


@pytest.mark.parametrize(
    ("settings", "mask", "value"),
    [
        ({}, (), 2),  # (1 + 3) / 2
        ({"add_bias_kv": True}, (), 3),  # (1 + 3 + 5) / 3
        ({"add_zero_attn": True}, (), 4 / 3),  # (1 + 3 + 0) / 3
        ({"add_bias_kv": True, "add_zero_attn": True}, (), 9 / 4),
        ({"key_padding_mask": "bool"}, (np.array([[False, True]]),), 1),  # True is left out
        ({"attn_mask": "bool"}, (np.array([[False, True]]),), 1),
        ({"attn_mask": "float"}, (np.array([[0.0, np.log(3)]]),), 2.5),  # weights 1/4 and 3/4
        ({"add_bias_kv": True, "key_padding_mask": "bool"}, (np.array([[False, True]]),), 3),  # (1 + 5) / 2
    ],
)
def test_the_output_is_the_mean_of_the_values_that_count(
    settings: dict[str, object], mask: tuple[Array, ...], value: float
) -> None:
    layer = replace(PLAIN, **settings)  # type: ignore[arg-type]
    output, _ = layer.forward((*INPUTS, *mask), parameters(layer))
    assert_close(output.item(), value)


def test_a_mask_of_three_dimensions_counts_the_heads_within_the_batch() -> None:
    layer = MultiheadAttention(2, 2, bias=False, attn_mask="bool", average_attn_weights=False)
    x, keys = np.ones((1, 1, 2)), np.ones((2, 1, 2))
    mask = np.array([[[False, True]], [[False, False]]])  # the first head sees the first key only
    _, weights = layer.forward((x, keys, keys, mask), parameters(layer))
    assert weights.tolist() == [[[[1, 0]], [[0.5, 0.5]]]]
    _, mean = replace(layer, average_attn_weights=True).forward((x, keys, keys, mask), parameters(layer))
    assert mean.tolist() == [[[0.75, 0.25]]]


def test_the_gradient_of_one_source_is_that_of_query_key_and_value_together() -> None:
    layer = replace(PLAIN, sources=1, need_weights=False)
    (dx,), _ = layer.vjp((KEYS,), parameters(layer), (np.ones_like(KEYS),))
    assert dx.ravel().tolist() == [1, 1]  # each of two outputs takes half of each value
    (dq, dk, dv), _ = layer.vjp((KEYS, KEYS, KEYS), parameters(layer), (np.ones_like(KEYS),))
    assert (dq.any(), dk.any(), dv.ravel().tolist()) == (False, False, [1, 1])


def test_the_weights_lead_neither_to_the_value_nor_to_the_output_s_projection() -> None:
    layer = MultiheadAttention(2, 1, vdim=3, add_bias_kv=True, key_padding_mask="bool")
    reached = layer.reaches((False, True))
    names = ["query", "key", "value", "key_padding_mask", *layer.parameters()]
    assert reached is not None
    assert [name for name, is_reached in zip(names, reached) if not is_reached] == [
        "value",
        "v_proj_weight",
        "bias_v",
        "out_proj.weight",
        "out_proj.bias",
    ]
    assert len(reached) == len(names)
    assert layer.reaches((True, False)) is None


def test_how_it_is_called() -> None:
    x, y, m = map(Ref, ("x", "y", "m"))
    layer = MultiheadAttention(1, 1, sources=2, key_padding_mask="bool", need_weights=False)
    assert layer.call((x, y, m)) == ((x, y, y), (("key_padding_mask", m), ("need_weights", Literal(False))))
    assert layer.result(("o",)) == ("o", None)
    assert layer.source() == "nn.MultiheadAttention(1, 1)"


@pytest.mark.parametrize(
    ("settings", "since"),
    [
        ({}, "1.7"),
        ({"batch_first": True}, "1.9"),
        ({"bias": False}, "1.9"),
        ({"average_attn_weights": False}, "1.11"),
        ({"key_padding_mask": "bool"}, "1.7"),
        ({"key_padding_mask": "float"}, "2.0"),
    ],
)
def test_the_release_depends_on_the_settings(settings: dict[str, object], since: str) -> None:
    assert MultiheadAttention(2, 1, **settings).since == since  # type: ignore[arg-type]
