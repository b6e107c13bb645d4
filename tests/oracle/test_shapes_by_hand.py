"""Paddings, shuffles, sliding blocks, interpolation, embeddings and distances, on numbers to check in one's head."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.layers.distance import CosineSimilarity, PairwiseDistance
from hookcheck.topology.layers.embedding import Embedding, EmbeddingBag
from hookcheck.topology.layers.folding import Fold, Unfold
from hookcheck.topology.layers.padding import CircularPad1d, ConstantPad2d, ReflectionPad1d, ReplicationPad1d, ZeroPad1d
from hookcheck.topology.layers.shuffling import ChannelShuffle, PixelShuffle, PixelUnshuffle
from hookcheck.topology.layers.structure import Flatten, Unflatten
from hookcheck.topology.layers.upsampling import Upsample
from hookcheck.topology.primitive import Array, Layer
from hookcheck.topology.tree import Literal


def forward(layer: Layer, *inputs: Any, **parameters: Any) -> Any:
    arrays = {name: np.array(p, float) for name, p in parameters.items()}
    return layer.forward(tuple(map(np.asarray, inputs)), arrays)[0].tolist()


def vjp(layer: Layer, *inputs: Any, v: Any, **parameters: Any) -> tuple[list[Any], dict[str, Any]]:
    arrays = {name: np.array(p, float) for name, p in parameters.items()}
    of_inputs, of_parameters = layer.vjp(tuple(map(np.asarray, inputs)), arrays, (np.array(v, float),))
    return [None if g is None else g.tolist() for g in of_inputs], {k: g.tolist() for k, g in of_parameters.items()}


ROW = np.array([[[1.0, 2.0, 3.0]]])  # (N, C, W) = (1, 1, 3)


@pytest.mark.parametrize(
    ("layer", "padded", "gradient"),
    [
        # The cotangent counts the places of the output: 1, 2, 4, 8, ...; so the sums tell which places read x.
        (ZeroPad1d((2, 1)), [0, 0, 1, 2, 3, 0], [4, 8, 16]),
        (ZeroPad1d((-1, 1)), [2, 3, 0], [0, 1, 2]),  # negative: the first place is cropped, and has no gradient
        (ReflectionPad1d((2, 1)), [3, 2, 1, 2, 3, 2], [4, 2 + 8 + 32, 1 + 16]),  # the border itself is not repeated
        (ReplicationPad1d((2, 1)), [1, 1, 1, 2, 3, 3], [1 + 2 + 4, 8, 16 + 32]),
        (CircularPad1d((2, 1)), [2, 3, 1, 2, 3, 1], [4 + 32, 1 + 8, 2 + 16]),
        (CircularPad1d(1), [3, 1, 2, 3, 1], [2 + 16, 4, 1 + 8]),
    ],
    ids=str,
)
def test_a_padding_reads_the_places_that_it_should(layer: Layer, padded: list[float], gradient: list[float]) -> None:
    assert forward(layer, ROW) == [[padded]]
    assert vjp(layer, ROW, v=[[[2**i for i in range(len(padded))]]])[0] == [[[gradient]]]


def test_a_tuple_of_paddings_begins_with_the_last_axis() -> None:
    # (left, right, top, bottom): one column of 5s before, one row of 5s after.
    layer = ConstantPad2d((1, 0, 0, 1), 5.0)
    assert forward(layer, [[[[1.0, 2.0]]]]) == [[[[5, 1, 2], [5, 5, 5]]]]
    assert vjp(layer, [[[[1.0, 2.0]]]], v=[[[[1, 2, 4], [8, 16, 32]]]])[0] == [[[[[2, 4]]]]]


def test_flatten_and_unflatten_count_axes_from_both_ends() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    assert Flatten().forward((x,), {})[0].shape == (2, 12)
    assert Flatten(0, 1).forward((x,), {})[0].shape == (6, 4)
    assert Flatten(0).forward((x,), {})[0].shape == (24,)
    assert Flatten(-3, -2).forward((x,), {})[0].shape == (6, 4)
    assert Unflatten(-1, (2, 2)).forward((x,), {})[0].shape == (2, 3, 2, 2)
    assert forward(Unflatten(0, (2, 1)), [5.0, 6.0]) == [[5], [6]]
    assert Flatten().source() == "nn.Flatten()"
    assert Flatten(0, 1).source() == "nn.Flatten(start_dim=0, end_dim=1)"


def test_pixel_shuffle_makes_four_channels_a_square_of_pixels() -> None:
    # Channels 0 1 / 2 3 become the pixels of each 2 x 2 square, row by row.
    channels = [[[[0.0, 10.0]], [[1.0, 11.0]], [[2.0, 12.0]], [[3.0, 13.0]]]]
    square = [[[[0.0, 1.0, 10.0, 11.0], [2.0, 3.0, 12.0, 13.0]]]]
    assert forward(PixelShuffle(2), channels) == square
    assert forward(PixelUnshuffle(2), square) == channels
    assert vjp(PixelShuffle(2), channels, v=square)[0] == [channels]
    assert vjp(PixelUnshuffle(2), square, v=channels)[0] == [square]


def test_channel_shuffle_takes_one_channel_of_each_group_in_turn() -> None:
    # Two groups of three, 0 1 2 and 3 4 5: the first of each, the second of each, the third of each.
    x = np.arange(6.0).reshape(1, 6, 1)
    assert ChannelShuffle(2).forward((x,), {})[0].ravel().tolist() == [0, 3, 1, 4, 2, 5]
    # y[1] = x[3], so v[1] = 1 goes to dx[3]; y[2] = x[1], so v[2] = 2 goes to dx[1].
    assert ChannelShuffle(2).vjp((x,), {}, (x,))[0][0].ravel().tolist() == [0, 2, 4, 1, 3, 5]


def test_unfold_and_fold_are_each_other_s_transpose() -> None:
    # Blocks of two columns in a row of three: (1, 2) and (2, 3); column by column they stand in the last axis.
    image, columns = [[[[1.0, 2.0, 3.0]]]], [[[1.0, 2.0], [2.0, 3.0]]]
    assert forward(Unfold((1, 2)), image) == columns
    # Folded back, the place in the middle is in both blocks: 2 + 2.
    assert forward(Fold((1, 3), (1, 2)), columns) == [[[[1, 4, 3]]]]
    assert vjp(Unfold((1, 2)), image, v=columns)[0] == [[[[[1, 4, 3]]]]]
    assert vjp(Fold((1, 3), (1, 2)), columns, v=image)[0] == [columns]
    # Padding gives zeros, the stride leaves blocks out, the dilation places between: of 0 1 2 3 0, (0, 2) and (2, 0).
    strided = Unfold((1, 2), dilation=(1, 2), padding=(0, 1), stride=(1, 2))
    assert forward(strided, image) == [[[0, 2], [2, 0]]]
    assert strided.source() == "nn.Unfold((1, 2), dilation=(1, 2), padding=(0, 1), stride=(1, 2))"


PAIR = np.array([[[0.0, 4.0]]])


@pytest.mark.parametrize(
    ("layer", "x", "resized"),
    [
        (Upsample(scale_factor=2.0), PAIR, [0, 0, 4, 4]),
        # To a size of 3, places 0, 2/3 and 4/3 (rounded down: 0, 0, 1); with their middles 1/3, 1 and 5/3: 0, 1, 1.
        (Upsample(size=3), PAIR, [0, 0, 4]),
        (Upsample(size=3, mode="nearest-exact"), PAIR, [0, 4, 4]),
        # Output place j lies at (j + 1/2) / 2 - 1/2 = -1/4, 1/4, 3/4, 5/4; the border is repeated.
        (Upsample(scale_factor=2.0, mode="linear"), PAIR, [0, 1, 3, 4]),
        # With corners aligned the four places are 0, 1/3, 2/3, 1.
        (Upsample(scale_factor=2.0, mode="linear", align_corners=True), PAIR, [0, 4 / 3, 8 / 3, 4]),
        # Half the size: the one place lies in the middle; with corners aligned, on the first place.
        (Upsample(scale_factor=0.5, mode="linear"), PAIR, [2]),
        (Upsample(size=1, mode="linear", align_corners=True), PAIR, [0]),
        # 3 · 1.5 = 4.5 gives 4 places, at (j + 1/2) / 1.5 - 1/2 = -1/6, 1/2, 7/6, 11/6 by the factor that was given,
        # and at (j + 1/2) · 3 / 4 - 1/2 = -1/8, 5/8, 11/8, 17/8 by the one recomputed.
        (Upsample(scale_factor=1.5, mode="linear"), 6 * ROW, [6, 9, 13, 17]),
        (Upsample(scale_factor=1.5, mode="linear", recompute_scale_factor=True), 8 * ROW, [8, 13, 19, 24]),
    ],
    ids=str,
)
def test_interpolation_weighs_the_neighbours(layer: Layer, x: Array, resized: list[float]) -> None:
    assert_close(layer.forward((x,), {})[0], [[resized]])


def test_bicubic_interpolation_has_the_weights_of_keys_with_a_minus_three_quarters() -> None:
    # Halfway between two places: for t = 1/2, (a + 2) / 8 - (a + 3) / 4 + 1 = 19/32 for the two near ones, and for
    # t = 3/2, a (27/8 - 45/4 + 12 - 4) = a / 8 = -3/32 for the two far ones. A row of four made one reads them all.
    x = np.array([[[[1.0, 2.0, 4.0, 8.0]]]])
    layer = Upsample(size=(1, 1), mode="bicubic")
    assert forward(layer, x) == [[[[(-3 * 1 + 19 * 2 + 19 * 4 - 3 * 8) / 32]]]]
    assert vjp(layer, x, v=[[[[32]]]])[0] == [[[[[-3, 19, 19, -3]]]]]


WEIGHT = [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]


def test_the_gradient_of_an_embedding_adds_up_over_equal_indices() -> None:
    x, v = [0, 2, 2], [[1, 0], [0, 4], [0, 8]]
    assert forward(Embedding(3, 2), x, weight=WEIGHT) == [WEIGHT[0], WEIGHT[2], WEIGHT[2]]
    assert vjp(Embedding(3, 2), x, v=v, weight=WEIGHT) == ([None], {"weight": [[1, 0], [0, 0], [0, 12]]})
    # The row of padding_idx is read all the same, but gets no gradient; -1 is the last row.
    padded = Embedding(3, 2, padding_idx=-1)
    assert forward(padded, x, weight=WEIGHT) == [WEIGHT[0], WEIGHT[2], WEIGHT[2]]
    assert vjp(padded, x, v=v, weight=WEIGHT)[1] == {"weight": [[1, 0], [0, 0], [0, 0]]}
    # Index 2 stands there twice, so that its gradient is halved.
    scaled = Embedding(3, 2, scale_grad_by_freq=True)
    assert vjp(scaled, x, v=v, weight=WEIGHT)[1] == {"weight": [[1, 0], [0, 0], [0, 6]]}


BAGS = [0, 2, 2, 1]


@pytest.mark.parametrize(
    ("layer", "inputs", "y", "gradient"),
    [
        # Bags (0, 2, 2), none, (1): the rows are 1, 3, 3 and 2.
        (EmbeddingBag(3, 2, mode="sum"), [BAGS, [0, 3, 3]], [[7, 70], [0, 0], [2, 20]], [6, 0, 12]),
        (EmbeddingBag(3, 2), [BAGS, [0, 3, 3]], [[7 / 3, 70 / 3], [0, 0], [2, 20]], [2, 0, 4]),
        (EmbeddingBag(3, 2, mode="max"), [BAGS, [0, 3, 3]], [[3, 30], [0, 0], [2, 20]], [0, 0, 6]),
        # The last offset is no bag but the end of the last one: (0, 2, 2, 1) is all.
        (EmbeddingBag(3, 2, mode="sum", include_last_offset=True), [BAGS, [0, 4]], [[9, 90]], [6, 6, 12]),
        # Rows as bags; indices 2 are left out of the sum, and of the count for the mean, which empties a bag.
        (EmbeddingBag(3, 2, padding_idx=2), [[[0, 2], [2, 2]]], [[1, 10], [0, 0]], [6, 0, 0]),
        (EmbeddingBag(3, 2, mode="max", padding_idx=2), [[[0, 2], [2, 2]]], [[1, 10], [0, 0]], [6, 0, 0]),
        # Index 2 stands there twice: half of 12.
        (EmbeddingBag(3, 2, True, mode="sum"), [[BAGS]], [[9, 90]], [6, 6, 6]),
    ],
    ids=str,
)
def test_an_embedding_bag_reduces_each_bag(
    layer: Layer, inputs: list[Any], y: list[list[float]], gradient: list[float]
) -> None:
    assert_close(forward(layer, *inputs, weight=WEIGHT), y)
    # The cotangent is 6 for the first bag and 0 for all others, in both columns.
    v = [[6, 6], *([0, 0] for _ in y[1:])]
    of_inputs, of_parameters = vjp(layer, *inputs, v=v, weight=WEIGHT)
    assert of_inputs == [None] * len(inputs)
    assert_close(of_parameters["weight"], [[g, g] for g in gradient])


def test_per_sample_weights_are_factors_with_a_gradient_of_their_own() -> None:
    layer = EmbeddingBag(3, 2, mode="sum", weighted=True)
    x, factors, v = [[0, 2]], [[2.0, -1.0]], [[1, 1]]
    assert forward(layer, x, factors, weight=WEIGHT) == [[2 - 3, 20 - 30]]
    # The factor of a row has the gradient v · row: 1 + 10, and 3 + 30.
    assert vjp(layer, x, factors, v=v, weight=WEIGHT) == ([None, [[11, 33]]], {"weight": [[2, 2], [0, 0], [-1, -1]]})
    assert layer.source() == "nn.EmbeddingBag(3, 2, mode='sum')"
    a, b, c = Literal(1), Literal(2), Literal(3)
    assert layer.call((a, b)) == ((a,), (("per_sample_weights", b),))
    assert layer.call((a, b, c)) == ((a, b), (("per_sample_weights", c),))
    assert EmbeddingBag(3, 2).call((a, b)) == ((a, b), ())


def test_the_cosine_does_not_change_along_the_vector() -> None:
    # a = (3, 4) has norm 5, b = (1, 0) norm 1: cos = 3/5. Along a nothing changes, so da is orthogonal to a:
    # b / 5 - (3/5) a / 25 = (1/5 - 9/125, -12/125) = (16, -12) / 125; and db = a / 5 - (3/5) b = (0, 4/5).
    a, b = [[3.0, 4.0]], [[1.0, 0.0]]
    assert forward(CosineSimilarity(), a, b) == [0.6]
    da, db = vjp(CosineSimilarity(), a, b, v=[1])[0]
    assert_close(da, [[16 / 125, -12 / 125]])
    assert_close(db, [[0, 4 / 5]])
    # Along the other axis there are two pairs of numbers, each of them parallel, the second with a zero.
    assert forward(CosineSimilarity(dim=0), a, b) == [1, 0]


def test_the_bound_of_a_short_vector_has_no_slope() -> None:
    # a = (3, 4) counts as if it were of length 10: cos = 3/10. What torch differentiates is a / |a| with the bound as a
    # constant only in the value: da = b / 10 - (3/10) (a / 5) / 10 = (0.1 - 0.018, -0.024).
    a, b = [[3.0, 4.0]], [[20.0, 0.0]]
    layer = CosineSimilarity(eps=10.0)
    assert forward(layer, a, b) == [0.3]
    assert_close(vjp(layer, a, b, v=[1])[0][0], [[0.082, -0.024]])
    # A zero has no direction.
    assert_close(vjp(layer, [[0.0, 0.0]], b, v=[1])[0][0], [[0.1, 0]])


def test_a_distance_is_the_norm_of_the_difference_and_eps() -> None:
    # a - b + eps = (3, -4): the norms are 5 and 7, and 1 / (1/3 + 1/4) = 12/7 for p = -1.
    a, b = [[4.0, -2.0]], [[1.5, 2.5]]
    for p, distance, slope in [
        (2.0, 5, [3 / 5, -4 / 5]),  # d / |d|
        (1.0, 7, [1, -1]),  # the sign
        (-1.0, 12 / 7, [16 / 49, -9 / 49]),  # sign(d) (y / d)²
    ]:
        layer = PairwiseDistance(p, 0.5)
        assert_close(forward(layer, a, b), [distance])
        da, db = vjp(layer, a, b, v=[1])[0]
        assert_close(da, [slope])
        assert_close(db, [[-s for s in slope]])
    assert_close(forward(PairwiseDistance(2.0, 0.5, True), a, b), [[5]])
