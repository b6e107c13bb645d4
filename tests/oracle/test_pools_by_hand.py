"""Poolings on numbers that can be checked in the head: the windows at the borders, the divisors, the indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.layers.average_pool import AdaptiveAvgPool1d, AvgPool1d, AvgPool2d, AvgPool3d
from hookcheck.topology.layers.fractional_pool import FractionalMaxPool2d, FractionalMaxPool3d
from hookcheck.topology.layers.lp_pool import LPPool1d, LPPool3d
from hookcheck.topology.layers.max_pool import AdaptiveMaxPool1d, AdaptiveMaxPool2d, MaxPool1d, MaxPool2d
from hookcheck.topology.layers.unpool import MaxUnpool1d, MaxUnpool2d
from hookcheck.topology.primitive import Primitive
from hookcheck.topology.tree import Literal, Pack, Ref
from hookcheck.topology.values import draw

LINE = np.array([[[1.0, 5, 2, 4, 3]]])
SQUARE = np.array([[[[1.0, 9, 2], [8, 3, 7], [4, 6, 5]]]])


def forward(layer: Primitive, *inputs: Any) -> Any:
    return layer.forward(inputs, {})[0].tolist()


def indices(layer: Primitive, *inputs: Any) -> Any:
    return layer.forward(inputs, {})[1].tolist()


def gradient(layer: Primitive, cotangent: Any, *inputs: Any) -> Any:
    (dx, *_), _ = layer.vjp(inputs, {}, (np.array(cotangent, dtype=float),))
    assert dx is not None
    return dx.tolist()


def test_a_maximum_gathers_the_cotangents_of_all_its_windows() -> None:
    # Windows {1, 5}, {5, 2}, {2, 4}, {4, 3}: 5 is the maximum of the first two, 4 of the last two.
    layer = MaxPool1d(2, stride=1)
    assert forward(layer, LINE) == [[[5, 5, 4, 4]]]
    assert gradient(layer, [[[1, 10, 100, 1000]]], LINE) == [[[0, 11, 0, 1100, 0]]]


def test_the_padding_never_is_the_maximum_and_is_not_counted_in_indices() -> None:
    layer = MaxPool1d(2, padding=1, return_indices=True)
    assert forward(layer, -LINE) == [[[-1, -2, -3]]]
    assert indices(layer, -LINE) == [[[0, 2, 4]]]


def test_dilation_takes_every_second_position() -> None:
    # {1, 2}, {5, 4}, {2, 3}
    assert forward(MaxPool1d(2, stride=1, dilation=2), LINE) == [[[2, 5, 3]]]


def test_an_index_counts_in_the_flattened_plane() -> None:
    # Windows {1, 9, 8, 3}, {9, 2, 3, 7}, {8, 3, 4, 6}, {3, 7, 6, 5}.
    layer = MaxPool2d(2, stride=1, return_indices=True)
    assert forward(layer, SQUARE) == [[[[9, 9], [8, 7]]]]
    assert indices(layer, SQUARE) == [[[[1, 1], [3, 5]]]]


def test_of_equal_numbers_the_first_is_the_maximum() -> None:
    level = np.zeros((1, 1, 2, 2))
    assert gradient(MaxPool2d(2), [[[[1]]]], level) == [[[[1, 0], [0, 0]]]]
    assert gradient(AdaptiveMaxPool2d(1), [[[[1]]]], level) == [[[[1, 0], [0, 0]]]]


def test_ceil_mode_adds_a_window_that_starts_inside_the_input() -> None:
    assert forward(MaxPool1d(2), LINE) == [[[5, 4]]]
    assert forward(MaxPool1d(2, ceil_mode=True), LINE) == [[[5, 4, 3]]]


def test_ceil_mode_adds_none_that_starts_in_the_padding() -> None:
    # Windows of 2, each 3rd from -1. Two positions: the next would start at 2, in the padding. Four positions: the next
    # starts at 2, one more would at 5, past the padding.
    layer = AvgPool1d(2, stride=3, padding=1, ceil_mode=True)
    assert forward(layer, np.ones((1, 1, 2))) == [[[0.5]]]
    assert forward(layer, np.ones((1, 1, 4))) == [[[0.5, 1]]]


@pytest.mark.parametrize(
    ("settings", "averages"),
    [
        # The windows of 3, each 3rd from -1: {0, 1, 5}, {2, 4, 3}.
        ({"padding": 1}, [6 / 3, 9 / 3]),
        ({"padding": 1, "count_include_pad": False}, [6 / 2, 9 / 3]),
        # Each 3rd from 0: {1, 5, 2} and, off-bounds, {4, 3}: what is past the padding never counts.
        ({"ceil_mode": True}, [8 / 3, 7 / 2]),
        # Each 2nd from -1: {0, 1, 5}, {5, 2, 4}, {4, 3, 0}.
        ({"padding": 1, "stride": 2}, [6 / 3, 11 / 3, 7 / 3]),
    ],
)
def test_the_divisor_of_an_average(settings: Any, averages: list[float]) -> None:
    assert_close(forward(AvgPool1d(3, **settings), LINE), [[averages]])


def test_what_a_window_reaches_beyond_the_padding_does_not_count_though_the_padding_does() -> None:
    # Windows of 3, each 4th from -1: of 0 1 5 2 4 3 0 {0, 1, 5} and {4, 3, 0}; of 0 1 5 2 4 0 {0, 1, 5} and {4, 0}.
    layer = AvgPool1d(3, stride=4, padding=1, ceil_mode=True)
    assert_close(forward(layer, LINE), [[[6 / 3, 7 / 3]]])
    assert_close(forward(layer, LINE[..., [0, 1, 2, 3]]), [[[6 / 3, 4 / 2]]])


def test_one_divisor_overrides_all() -> None:
    assert forward(AvgPool2d(3, divisor_override=5), SQUARE) == [[[[9]]]]  # 45 / 5
    assert gradient(AvgPool2d(3, divisor_override=5), [[[[10]]]], SQUARE) == np.full((1, 1, 3, 3), 2.0).tolist()
    cube = np.ones((1, 1, 2, 2, 2))
    assert forward(AvgPool3d(2, padding=1, divisor_override=4), cube) == (cube / 4).tolist()


def test_adaptive_windows_overlap_where_the_sizes_do_not_divide() -> None:
    # 5 positions to 3 windows: from 0, 5/3, 10/3 rounded down to 5/3, 10/3, 5 rounded up: {1, 5}, {5, 2, 4}, {4, 3}.
    assert_close(forward(AdaptiveAvgPool1d(3), LINE), [[[3, 11 / 3, 3.5]]])
    assert_close(gradient(AdaptiveAvgPool1d(3), [[[2, 3, 4]]], LINE), [[[1, 2, 1, 3, 2]]])
    assert indices(AdaptiveMaxPool1d(3, return_indices=True), LINE) == [[[1, 1, 3]]]


def test_an_adaptive_layer_may_give_more_than_it_gets() -> None:
    # 2 positions to 3 windows: {1}, {1, 5}, {5}.
    assert forward(AdaptiveAvgPool1d(3), LINE[..., :2]) == [[[1, 3, 5]]]


def test_none_keeps_a_dimension() -> None:
    assert forward(AdaptiveMaxPool2d((1, None)), SQUARE) == [[[[8, 9, 7]]]]


def test_the_norms() -> None:
    pythagorean = np.array([[[3.0, -4]]])
    assert forward(LPPool1d(2, 2), pythagorean) == [[[5]]]
    assert_close(gradient(LPPool1d(2, 2), [[[10]]], pythagorean), [[[6, -8]]])
    assert forward(LPPool1d(1, 2), pythagorean) == [[[-1]]]  # the plain sum, no absolute values
    assert_close(forward(LPPool1d(3, 2), np.array([[[0.0, 2]]])), [[[2]]])


@pytest.mark.parametrize(("norm", "window"), [(1, [1.0, -1]), (2, [0.0, 0]), (3, [0.0, 0])])
def test_a_sum_of_zero_has_the_gradient_zero(norm: int, window: list[float]) -> None:
    assert forward(LPPool1d(norm, 2), np.array([[window]])) == [[[0]]]
    assert gradient(LPPool1d(norm, 2), [[[1]]], np.array([[window]])) == [[[0, 0]]]


def test_a_norm_of_a_window_that_goes_off_bounds_is_scaled_up_to_a_full_one() -> None:
    # {1, 5} and {2, ·}: twice the average of 2² is 8.
    assert_close(forward(LPPool1d(2, 2, ceil_mode=True), LINE[..., :3]), [[[26**0.5, 8**0.5]]])


def test_the_third_dimension_of_norms_came_later() -> None:
    assert (LPPool1d(2, 2).since, LPPool3d(2, 2).since) == ("1.7", "2.3")


def test_the_samples_move_fractional_windows() -> None:
    # Four positions to three windows of one: α = 3/2, and the second starts at ⌊1.5 + 1.5 u⌋ − ⌊1.5 u⌋, which is 1 for
    # u = 1/32 and 2 for u = 13/32. The first sample of a plane is its columns', the second its rows'.
    x = np.arange(16.0).reshape(1, 1, 4, 4)
    layer = FractionalMaxPool2d(1, 3, (((1 / 32, 13 / 32),),))
    assert forward(layer, x) == [[[[0, 1, 3], [8, 9, 11], [12, 13, 15]]]]
    assert "_random_samples=torch.tensor([[[0.03125, 0.40625]]])" in layer.source()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [FractionalMaxPool2d, FractionalMaxPool3d])
def test_fractional_windows_are_those_of_torch_where_the_samples_matter(kind: type[Any], seed: int) -> None:
    extent = (7, 6, 8)[: kind.dims]
    samples = draw(seed, "samples", (2, 2, kind.dims), "unit")
    layer = kind(2, (4, 4, 6)[: kind.dims], tuple(tuple(map(tuple, plane)) for plane in samples.tolist()), True)
    x = draw(seed, "x", (2, 2, *extent))
    module = eval(layer.source(), {"nn": torch.nn, "torch": torch}).double()
    for ours, theirs in zip(layer.forward((x,), {}), module(torch.tensor(x))):
        np.testing.assert_array_equal(ours, theirs.numpy())


def test_unpooling_puts_values_back_and_zeros_elsewhere() -> None:
    x, at = np.array([[[5.0, 4]]]), np.array([[[1, 3]]])
    assert forward(MaxUnpool1d(2), x, at) == [[[0, 5, 0, 4]]]
    assert forward(MaxUnpool1d(2, output_size=(5,)), x, at) == [[[0, 5, 0, 4, 0]]]
    assert gradient(MaxUnpool1d(2), [[[1, 2, 3, 4]]], x, at) == [[[2, 4]]]


def test_unpooling_inverts_a_max_pooling_but_for_the_rest() -> None:
    y, at = MaxPool2d((1, 3), return_indices=True).forward((SQUARE,), {})
    assert forward(MaxUnpool2d((1, 3)), y, at) == [[[[0, 9, 0], [8, 0, 0], [0, 6, 0]]]]


def test_the_size_of_the_output_is_said_in_the_call_not_in_the_module() -> None:
    layer = MaxUnpool1d(2, output_size=(5,))
    operands = (Ref("x"), Ref("i"))
    assert layer.source() == "nn.MaxUnpool1d(2)"
    assert layer.call(operands) == (operands, (("output_size", Pack("list", (Literal(5),))),))
    assert MaxUnpool1d(2).call(operands) == (operands, ())
