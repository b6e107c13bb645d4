"""Convolutions small enough to work out on paper, above all in the settings that are easy to get wrong."""

from __future__ import annotations

import numpy as np
import pytest

from hookcheck.topology.layers.bilinear import Bilinear
from hookcheck.topology.layers.convolution import Conv1d, Conv2d, Conv3d
from hookcheck.topology.layers.transposed import ConvTranspose1d, ConvTranspose2d
from hookcheck.topology.primitive import Array, Layer
from hookcheck.topology.tree import Literal, Pack, Ref


def forward(layer: Layer, x: object, weight: object, bias: object = None) -> Array:
    parameters = {"weight": np.array(weight, float)}
    if bias is not None:
        parameters["bias"] = np.array(bias, float)
    return layer.forward((np.array(x, float),), parameters)[0]


def vjp(layer: Layer, x: object, weight: object, v: object) -> tuple[Array, Array]:
    (dx,), gradients = layer.vjp((np.array(x, float),), {"weight": np.array(weight, float)}, (np.array(v, float),))
    assert dx is not None
    return dx, gradients["weight"]


X = [[[1, 2, 4]]]


@pytest.mark.parametrize(
    ("mode", "padded"),
    [
        ("zeros", [0, 0, 1, 2, 4, 0, 0]),
        ("reflect", [4, 2, 1, 2, 4, 2, 1]),  # the end itself is not repeated
        ("replicate", [1, 1, 1, 2, 4, 4, 4]),
        ("circular", [2, 4, 1, 2, 4, 1, 2]),
    ],
)
def test_padding_modes(mode: str, padded: list[int]) -> None:
    layer = Conv1d(1, 1, (1,), padding=(2,), bias=False, padding_mode=mode)
    assert forward(layer, X, [[[1]]]).tolist() == [[padded]]


def test_the_gradient_of_padding_goes_to_where_it_was_copied_from() -> None:
    # padded by one: reflect reads 2 1 2 4 2, so the 1 is read once, the 2 three times and the 4 once
    v = [[[1, 10, 100, 1000, 10000]]]
    read = {"reflect": [10, 10101, 1000], "replicate": [11, 100, 11000], "circular": [10010, 100, 1001]}
    for mode, expected in read.items():
        layer = Conv1d(1, 1, (1,), padding=(1,), bias=False, padding_mode=mode)
        assert vjp(layer, X, [[[1]]], v)[0].tolist() == [[expected]]


def test_same_padding_puts_the_odd_element_at_the_end() -> None:
    layer = Conv1d(1, 1, (2,), padding="same", bias=False)
    # y[i] = x[i] + 10 x[i + 1]: the added zero is the last one
    assert forward(layer, X, [[[1, 10]]]).tolist() == [[[21, 42, 4]]]
    assert forward(Conv1d(1, 1, (2,), padding="valid", bias=False), X, [[[1, 10]]]).tolist() == [[[21, 42]]]


def test_same_padding_takes_dilation_into_account() -> None:
    # the kernel reaches 2 further: one zero on either side, y[i] = x[i - 1] + 10 x[i + 1]
    layer = Conv1d(1, 1, (2,), padding="same", dilation=(2,), bias=False)
    assert forward(layer, X, [[[1, 10]]]).tolist() == [[[20, 41, 2]]]


def test_a_convolution_by_hand() -> None:
    # stride 2 over 1 2 4 0 with one zero before and after: windows (0 1 2), (2 4 0); the last zero is never read
    layer = Conv1d(1, 1, (3,), stride=(2,), padding=(1,))
    x = [[[1, 2, 4, 0]]]
    assert forward(layer, x, [[[1, 10, 100]]], [0.5]).tolist() == [[[210.5, 42.5]]]
    dx, dw = vjp(Conv1d(1, 1, (3,), stride=(2,), padding=(1,), bias=False), x, [[[1, 10, 100]]], [[[1, 3]]])
    assert dx.tolist() == [[[10, 103, 30, 300]]]
    assert dw.tolist() == [[[6, 13, 2]]]  # (0 1 2) + 3 · (2 4 0)


def test_each_group_sees_its_own_channels() -> None:
    # two groups, each of one input and two output channels
    layer = Conv2d(2, 4, (1, 1), groups=2, bias=False)
    weight = np.array([1, 2, 3, 4]).reshape(4, 1, 1, 1)
    assert forward(layer, [[[[10]], [[100]]]], weight).ravel().tolist() == [10, 20, 300, 400]


def test_axes_are_not_mixed_up() -> None:
    # a kernel along the second of three axes only
    layer = Conv3d(1, 1, (1, 2, 1), bias=False)
    x = np.arange(8.0).reshape(1, 1, 2, 2, 2)
    assert forward(layer, x, np.array([1, 10]).reshape(1, 1, 1, 2, 1)).ravel().tolist() == [20, 31, 64, 75]


def test_a_transposed_convolution_by_hand() -> None:
    # each input element adds (1 10 100), two apart: 1 10 100+2 20 200; output_padding adds a place that nothing reaches
    layer = ConvTranspose1d(1, 1, (3,), stride=(2,), output_padding=(1,))
    assert forward(layer, [[[1, 2]]], [[[1, 10, 100]]], [0.5]).tolist() == [[[1.5, 10.5, 102.5, 20.5, 200.5, 0.5]]]
    cropped = ConvTranspose1d(1, 1, (3,), stride=(2,), padding=(1,), output_padding=(1,), bias=False)
    assert forward(cropped, [[[1, 2]]], [[[1, 10, 100]]]).tolist() == [[[10, 102, 20, 200]]]
    dx, dw = vjp(cropped, [[[1, 2]]], [[[1, 10, 100]]], [[[1, 0, 0, 3]]])
    assert dx.tolist() == [[[10, 300]]]  # cropped places give nothing back
    assert dw.tolist() == [[[0, 1, 6]]]


def test_the_weight_of_a_transposed_convolution_starts_with_its_input_channels() -> None:
    layer = ConvTranspose2d(4, 2, (1, 1), groups=2, bias=False)
    assert layer.parameters() == {"weight": (4, 1, 1, 1)}
    weight = np.array([1, 2, 3, 4]).reshape(4, 1, 1, 1)
    # channels 0 and 1 go to output 0, channels 2 and 3 to output 1
    x = np.array([1, 10, 100, 1000]).reshape(1, 4, 1, 1)
    assert forward(layer, x, weight).ravel().tolist() == [21, 4300]


def test_an_output_size_stands_for_the_output_padding() -> None:
    layer = ConvTranspose1d(1, 1, (1,), stride=(2,), output_padding=(1,), bias=False, output_size=(3,))
    assert forward(layer, [[[1, 2]]], [[[1]]]).tolist() == [[[1, 0, 2]]]
    assert layer.source() == "nn.ConvTranspose1d(1, 1, (1,), stride=(2,), output_padding=(1,), bias=False)"
    assert layer.call((Ref("x"),)) == ((Ref("x"),), (("output_size", Pack("tuple", (Literal(3),))),))


def test_since_depends_on_the_settings() -> None:
    assert Conv3d(1, 1, (2, 1, 1)).since == "1.7"
    assert Conv3d(1, 1, (1, 1, 1)).since == "1.8"
    assert Conv2d(1, 1, (1, 1), padding="same").since == "1.9"
    assert Conv2d(1, 1, (1, 1), padding_mode="reflect").since == "1.7"
    assert Conv3d(1, 1, (1, 1, 1), padding="same", padding_mode="reflect").since == "1.10"


def test_a_bilinear_by_hand() -> None:
    # y = Σ x₁[i] A[i, j] x₂[j] = 1·(1·5 + 2·7) + 3·(10·5 + 20·7) with A = ((1, 2), (10, 20))
    layer = Bilinear(2, 2, 1, bias=False)
    x1, x2, parameters = np.array([[1.0, 3]]), np.array([[5.0, 7]]), {"weight": np.array([[[1.0, 2], [10, 20]]])}
    assert layer.forward((x1, x2), parameters)[0].tolist() == [[589]]
    (d1, d2), gradients = layer.vjp((x1, x2), parameters, (np.array([[2.0]]),))
    assert d1.tolist() == [[38, 380]]
    assert d2.tolist() == [[62, 124]]
    assert gradients["weight"].tolist() == [[[10, 14], [30, 42]]]
