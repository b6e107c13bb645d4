"""Normalisations small enough to work out on paper, above all what they keep from one forward to the next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.codec import encode
from hookcheck.topology.layers.batch_norm import BatchNorm1d, BatchNorm2d, InstanceNorm1d
from hookcheck.topology.layers.normalisation import GroupNorm, LayerNorm, RMSNorm
from hookcheck.topology.layers.response_norm import LocalResponseNorm
from hookcheck.topology.primitive import Layer


def test_a_batch_norm_by_hand() -> None:
    # the channel holds 0 and 6: mean 3, variance 9; with eps 7 the divisor is 4
    layer = BatchNorm1d(1, eps=7.0)
    x, parameters = np.array([[0.0], [6]]), {"weight": np.array([2.0]), "bias": np.array([1.0]), **layer.buffers()}
    assert layer.forward((x,), parameters)[0].tolist() == [[-0.5], [2.5]]
    # g = (2, 0): mean 1; x̂ = (−3/4, 3/4): mean of g x̂ −3/4; dx = 1/4 (2 − 1 − 9/16, 0 − 1 + 9/16)
    (dx,), gradients = layer.vjp((x,), parameters, (np.array([[1.0], [0]]),))
    assert dx is not None
    assert dx.tolist() == [[7 / 64], [-7 / 64]]
    assert {name: array.tolist() for name, array in gradients.items()} == {"weight": [-0.75], "bias": [1]}


def test_running_statistics_take_the_unbiased_variance() -> None:
    # 0 and 6 in a channel: mean 3, unbiased variance 18
    layer, x = BatchNorm1d(1, momentum=0.5), np.array([[0.0], [6]])
    once = layer.updated((x,), layer.buffers())
    assert {name: array.tolist() for name, array in once.items()} == {
        "running_mean": [1.5],
        "running_var": [9.5],
        "num_batches_tracked": 1,
    }


def test_without_momentum_they_are_the_mean_over_all_batches() -> None:
    layer = BatchNorm1d(1, momentum=None)
    once = layer.updated((np.array([[0.0], [6]]),), layer.buffers())
    twice = layer.updated((np.array([[1.0], [1]]),), once)
    assert (once["running_mean"].tolist(), once["running_var"].tolist()) == ([3], [18])
    assert (twice["running_mean"].tolist(), twice["running_var"].tolist()) == ([2], [9])
    assert twice["num_batches_tracked"] == 2


def test_in_eval_mode_running_statistics_are_constants() -> None:
    layer = BatchNorm2d(1, eps=0.0, affine=False)
    buffers = {"running_mean": np.array([1.0]), "running_var": np.array([4.0])}
    x = np.array([5.0, 1]).reshape(1, 1, 1, 2)
    assert layer.evaluated().forward((x,), buffers)[0].ravel().tolist() == [2, 0]
    (dx,), _ = layer.evaluated().vjp((x,), buffers, (np.array([1.0, 3]).reshape(x.shape),))
    assert dx is not None
    assert dx.ravel().tolist() == [0.5, 1.5]


@pytest.mark.parametrize("layer", [BatchNorm1d(1, track_running_stats=False), InstanceNorm1d(1), LayerNorm((1,))])
def test_without_running_statistics_eval_mode_is_training_mode(layer: Layer) -> None:
    assert layer.evaluated() is layer
    assert layer.buffers() == layer.updated((np.ones((2, 1, 2)),), {}) == {}


def test_the_mode_is_neither_printed_nor_stored_and_shows_in_equality_alone() -> None:
    layer = BatchNorm1d(2)
    assert encode(layer) == {"type": "BatchNorm1d", "num_features": 2}
    assert layer.source() == replace(layer, training=False).source() == "nn.BatchNorm1d(2)"
    assert layer.evaluated() != layer


def test_instances_are_normalised_on_their_own_and_averaged_in_the_buffers() -> None:
    # means 3 and 10, unbiased variances 18 and 2; biased ones 9 and 1
    layer = InstanceNorm1d(1, eps=7.0, momentum=0.5, track_running_stats=True)
    x = np.array([[[0.0, 6]], [[9, 11]]])
    y = layer.forward((x,), layer.buffers())[0]
    assert_close(y.ravel(), [-0.75, 0.75, -(8**-0.5), 8**-0.5])
    after = layer.updated((x,), layer.buffers())
    assert {name: array.tolist() for name, array in after.items()} == {"running_mean": [3.25], "running_var": [5.5]}


def test_groups_hold_neighbouring_channels() -> None:
    # channels 0 and 1 are one group: mean 3, variance 9; channels 2 and 3 the other: mean 11, variance 1, divisor √8
    layer = GroupNorm(2, 4, eps=7.0, affine=False)
    y = layer.forward((np.array([[0.0, 6, 10, 12]]),), {})[0]
    assert_close(y, [[-0.75, 0.75, -(8**-0.5), 8**-0.5]])


def test_a_layer_norm_over_two_axes_has_a_weight_for_each_element() -> None:
    # 0 0 6 6: mean 3, variance 9, divisor 4
    layer = LayerNorm((2, 2), eps=7.0)
    assert layer.parameters() == {"weight": (2, 2), "bias": (2, 2)}
    x, weight = np.array([[[0.0, 0], [6, 6]]]), np.array([[4.0, 8], [12, 16]])
    assert layer.forward((x,), {"weight": weight, "bias": np.ones((2, 2))})[0].tolist() == [[[-2, -5], [10, 13]]]
    assert LayerNorm((2,), bias=False).parameters() == {"weight": (2,)}
    assert LayerNorm((2,), elementwise_affine=False).parameters() == {}


def test_a_root_mean_square_norm_does_not_centre() -> None:
    # 1 and 7: mean square 25, with eps 11 the divisor is 6
    layer = RMSNorm((2,), 11.0)
    (dx,), gradients = layer.vjp((np.array([1.0, 7]),), {"weight": np.ones(2)}, (np.array([1.0, 0]),))
    y = layer.forward((np.array([1.0, 7]),), {"weight": np.array([6.0, 12])})[0]
    assert_close(y, [1, 14])
    # dx = 1/6 (g − x̂ mean(g x̂)) with x̂ = (1/6, 7/6) and mean(g x̂) = 1/12
    assert dx is not None
    assert_close(dx, [(1 - 1 / 72) / 6, -7 / 432])
    assert_close(gradients["weight"], [1 / 6, 0])


def test_an_even_window_of_channels_reaches_further_back() -> None:
    # windows of two: channel c sees c − 1 and c; the sum of squares is divided by 2 even where there is but one
    layer = LocalResponseNorm(2, alpha=2.0, beta=1.0)
    y = layer.forward((np.array([1.0, 2, 3]).reshape(1, 3, 1),), {})[0]
    assert_close(y.ravel(), [1 / 2, 2 / 6, 3 / 14])


def test_since_depends_on_the_settings() -> None:
    assert LayerNorm((1,)).since == GroupNorm(1, 1).since == BatchNorm1d(1).since == "1.7"
    assert LayerNorm((1,), bias=False).since == "2.1"
    assert RMSNorm((1,), 1.0).since == "2.4"
