"""Activations, softmaxes and dropouts on numbers that can be checked in one's head, and in place as torch does it."""

from __future__ import annotations

from math import e, log, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.families.fitting import ranks
from hookcheck.topology.layers.activation import SELU, Hardsigmoid, Hardswish, LogSigmoid, ReLU, ReLU6, Softsign
from hookcheck.topology.layers.adjustable import (
    CELU,
    ELU,
    GELU,
    GLU,
    Hardshrink,
    Hardtanh,
    LeakyReLU,
    PReLU,
    RReLU,
    Softplus,
    Softshrink,
    Threshold,
)
from hookcheck.topology.layers.dropout import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)
from hookcheck.topology.layers.identity import Identity
from hookcheck.topology.layers.softmax import LogSoftmax, Softmax, Softmax2d, Softmin
from hookcheck.topology.layers.unary import Unary
from hookcheck.topology.primitive import Array, Layer

from .in_jax.activations import IN_JAX
from .primitives import constructed, steps
from .test_formulas import offered

DROPOUTS = [Dropout, Dropout1d, Dropout2d, Dropout3d, AlphaDropout, FeatureAlphaDropout]


def of(layer: Layer, x: list, v: list, **parameters: list) -> tuple[Array, Array]:
    """The output for ``x``, and the gradient of ``x`` for the cotangent ``v``."""
    inputs, arrays = (np.array(x, float),), {name: np.array(p, float) for name, p in parameters.items()}
    (dx,), _ = layer.vjp(inputs, arrays, (np.array(v, float),))
    assert dx is not None
    return layer.forward(inputs, arrays)[0], dx


class TestWhereTheBranchesMeet:
    """Drawn inputs stay within (-3, 3), so the outer branches are tried here."""

    def test_hardswish_is_nothing_below_minus_3_and_everything_above_3(self) -> None:
        # at 1: 1 (1 + 3) / 6 = 2/3, and the slope 1/3 + 1/2 = 5/6
        y, dx = of(Hardswish(), [-4, 1, 4], [6, 6, 6])
        assert_close(y, [0, 2 / 3, 4])
        assert_close(dx, [0, 5, 6])

    def test_hardsigmoid_rises_by_a_sixth_between_minus_3_and_3(self) -> None:
        y, dx = of(Hardsigmoid(), [-4, 0, 1.5, 4], [6, 6, 6, 6])
        assert_close(y, [0, 0.5, 0.75, 1])
        assert_close(dx, [0, 1, 1, 0])

    def test_relu6_is_cut_off_at_6(self) -> None:
        y, dx = of(ReLU6(), [-1, 5, 7], [2, 2, 2])
        assert y.tolist() == [0, 5, 6]
        assert dx.tolist() == [0, 2, 0]

    def test_softplus_is_the_identity_where_beta_x_exceeds_the_threshold(self) -> None:
        # beta x is 1, 2 and 3; only 3 exceeds the threshold, for which x counts and not the output
        y, dx = of(Softplus(2.0, 2.5), [0.5, 1, 1.5], [1, 1, 1])
        assert_close(y, [log(1 + e) / 2, log(1 + e**2) / 2, 1.5])
        assert_close(dx, [e / (1 + e), e**2 / (1 + e**2), 1])

    def test_threshold_replaces_what_is_not_above_it_even_by_a_larger_number(self) -> None:
        y, dx = of(Threshold(1.0, 20.0), [0, 1, 2], [3, 3, 3])
        assert y.tolist() == [20, 20, 2]
        assert dx.tolist() == [0, 0, 3]

    def test_hardtanh_is_flat_outside_its_bounds(self) -> None:
        y, dx = of(Hardtanh(-0.5, 2.0), [-1, -0.5, 1, 3], [1, 1, 1, 1])
        assert y.tolist() == [-0.5, -0.5, 1, 2]
        assert dx.tolist() == [0, 0, 1, 0]

    def test_hardshrink_keeps_what_softshrink_moves_towards_0(self) -> None:
        hard, d_hard = of(Hardshrink(1.0), [-3, 0.5, 2], [1, 1, 1])
        soft, d_soft = of(Softshrink(1.0), [-3, 0.5, 2], [1, 1, 1])
        assert hard.tolist() == [-3, 0, 2]
        assert soft.tolist() == [-2, 0, 1]
        assert d_hard.tolist() == d_soft.tolist() == [1, 0, 1]


class TestAtZero:
    """Zero is what other layers often give: the branch ``x <= 0`` has it."""

    @pytest.mark.parametrize(
        ("layer", "slope"),
        [
            (ReLU(), 0),
            (LeakyReLU(0.25), 0.25),
            (RReLU(0.25), 0.25),
            (Threshold(0.0, 0.0), 0),
            (ELU(0.5), 0.5),
            (CELU(2.0), 1),
            (SELU(), 1.7580993408473766),  # 1.0507009873554805 * 1.6732632423543772
            (Softsign(), 1),
            (GELU(), 0.5),
            (GELU("tanh"), 0.5),
        ],
        ids=repr,
    )
    def test_it_lies_on_the_lower_branch(self, layer: Layer, slope: float) -> None:
        y, dx = of(layer, [0], [1])
        assert y == 0
        assert_close(dx, [slope])

    def test_prelu_has_its_weight_there(self) -> None:
        _, dx = of(PReLU(), [0], [1], weight=[0.75])
        assert dx == 0.75


class TestWithSettings:
    def test_elu_falls_to_minus_alpha_and_celu_too_but_more_gently(self) -> None:
        # at -2 with alpha 2: 2 (e**-2 - 1) against 2 (e**-1 - 1), slopes 2 e**-2 against e**-1
        steep, d_steep = of(ELU(2.0), [-2], [1])
        gentle, d_gentle = of(CELU(2.0), [-2], [1])
        assert_close([steep[0], gentle[0]], [2 * (e**-2 - 1), 2 * (e**-1 - 1)])
        assert_close([d_steep[0], d_gentle[0]], [2 * e**-2, e**-1])

    def test_gelu_is_x_times_the_share_of_normal_numbers_below_it(self) -> None:
        # at 1 standard deviation: 0.8413447460685429 lie below
        y, _ = of(GELU(), [1, -1], [1, 1])
        assert_close(y, [0.8413447460685429, 0.8413447460685429 - 1])

    def test_the_tanh_approximation_of_gelu_is_another_function(self) -> None:
        y, _ = of(GELU("tanh"), [1], [1])
        assert_close(y, [(1 + np.tanh(sqrt(2 / np.pi) * 1.044715)) / 2])
        assert GELU().since == "1.7"
        assert GELU("tanh").since == "1.12"

    def test_log_sigmoid_of_a_very_negative_number_is_that_number(self) -> None:
        y, dx = of(LogSigmoid(), [-700, 0], [1, 1])
        assert_close(y, [-700, -log(2)])
        assert_close(dx, [1, 0.5])

    def test_prelu_has_one_weight_for_each_channel(self) -> None:
        # (N, C) = (2, 2), weights 10 and 100: dw sums v x over the negative elements of each column
        x, v = np.array([[-1.0, -2], [3, -4]]), np.array([[1.0, 1], [1, 5]])
        parameters = {"weight": np.array([10.0, 100])}
        (y,) = PReLU(2).forward((x,), parameters)
        (dx,), gradients = PReLU(2).vjp((x,), parameters, (v,))
        assert y.tolist() == [[-10, -200], [3, -400]]
        assert dx is not None
        assert dx.tolist() == [[10, 100], [1, 500]]
        assert gradients["weight"].tolist() == [-1, -22]

    def test_prelu_with_one_weight_has_it_for_all(self) -> None:
        x, v = np.array([[-1.0, -2], [3, -4]]), np.array([[1.0, 1], [1, 5]])
        _, gradients = PReLU().vjp((x,), {"weight": np.array([10.0])}, (v,))
        assert gradients["weight"].tolist() == [-23]

    def test_glu_gates_the_first_half_by_the_second(self) -> None:
        # the gates are sigmoid(0) = 1/2, of slope 1/4: da = v / 2, db = v a / 4
        y, dx = of(GLU(0), [4, 8, 0, 0], [1, 2])
        assert y.tolist() == [2, 4]
        assert dx.tolist() == [0.5, 1, 1, 4]


class TestSoftmaxes:
    # exp(log 3) = 3 and exp(0) = 1, so a softmax is 3/4, 1/4
    def test_softmax(self) -> None:
        # dx = y (v - sum y v) with sum y v = 3
        y, dx = of(Softmax(0), [log(3), 0], [4, 0])
        assert_close(y, [0.75, 0.25])
        assert_close(dx, [0.75, -0.75])

    def test_softmin_prefers_the_smallest(self) -> None:
        # y = 1/4, 3/4, sum y v = 1, dx = -y (v - 1)
        y, dx = of(Softmin(0), [log(3), 0], [4, 0])
        assert_close(y, [0.25, 0.75])
        assert_close(dx, [-0.75, 0.75])

    def test_log_softmax(self) -> None:
        # dx = v - y sum v = 4 - 3, 0 - 1
        y, dx = of(LogSoftmax(0), [log(3), 0], [4, 0])
        assert_close(y, [log(0.75), log(0.25)])
        assert_close(dx, [1, -1])

    def test_softmax2d_is_over_the_channels(self) -> None:
        x = np.array([log(3), 0.0]).reshape(1, 2, 1, 1)
        (y,) = Softmax2d().forward((x,), {})
        assert_close(y.ravel(), [0.75, 0.25])

    def test_a_large_number_does_not_overflow(self) -> None:
        y, _ = of(Softmax(0), [1000, 0], [1, 1])
        assert y.tolist() == [1, 0]


@pytest.mark.parametrize("kind", DROPOUTS)
class TestDropouts:
    def test_all_is_kept_or_all_is_dropped(self, kind: type[Layer]) -> None:
        identity, dropped = kind(p=0.0), kind(p=1.0)  # type: ignore[call-arg]
        assert [array.tolist() for array in of(identity, [2, -3], [5, 7])] == [[2, -3], [5, 7]]
        assert [array.tolist() for array in of(dropped, [2, -3], [5, 7])] == [[0, 0], [0, 0]]
        assert identity.passes
        assert not dropped.passes

    def test_what_lies_between_is_random_in_training_and_the_identity_in_eval_mode(self, kind: type[Layer]) -> None:
        layer = kind()
        assert layer.evaluated() == Identity()
        assert not layer.passes
        with pytest.raises(ValueError, match=r"p=0\.5 keeps in training is random"):
            layer.forward((np.ones(2),), {})
        with pytest.raises(ValueError, match=r"p=0\.5 keeps in training is random"):
            layer.vjp((np.ones(2),), {}, (np.ones(2),))

    def test_in_eval_mode_torch_gives_the_input_itself(self, kind: type[Layer]) -> None:
        if not offered(kind().since):
            return
        x = torch.ones((2,) * ranks(kind)[0])
        for layer in (kind(), kind(keeps=(True, False))):  # type: ignore[call-arg]
            assert constructed(layer).eval()(x) is x

    def test_what_a_mask_drops_has_no_gradient(self, kind: type[Layer]) -> None:
        layer: Any = kind(p=0.25, keeps=(False, True))  # type: ignore[call-arg]
        _, dx = of(layer, [[3, 6], [-3, 9]], [[1, 2], [3, 6]])
        np.testing.assert_array_equal(dx, layer.factor * np.array([[0, 0], [3, 6]]))

    @pytest.mark.parametrize("inplace", [False, True])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("p", [0.5, 0.25])
    def test_torch_keeps_what_the_mask_says_and_its_generator_stays_as_it_was(
        self, kind: type[Layer], p: float, dtype: torch.dtype, inplace: bool
    ) -> None:
        keeps = (True, False, False, True, True, False)
        layer: Any = kind(p=p, inplace=inplace, keeps=keeps)  # type: ignore[call-arg]
        if not offered(layer.since):
            return
        shape = (3, 2, 2, 1, 2)[: ranks(kind)[-1] if layer.dimensions else 2]
        module, numbers = constructed(layer), np.linspace(-3, 3, int(np.prod(shape))).reshape(shape)
        torch.manual_seed(3)
        before = torch.get_rng_state()
        # In memory the last of these lies as no other: torch's draws go by that.
        for x in (torch.tensor(numbers), torch.tensor(numbers.swapaxes(0, 1).copy()).transpose(0, 1)):
            ones = module(torch.ones_like(x, dtype=dtype)).flatten(1).reshape(len(keeps), -1)
            assert [bool((row > 0).all()) for row in ones] == list(keeps)
            y = module(x.to(dtype) * 1)
            assert y.dtype == dtype
            assert_close(y.numpy(), layer.value(numbers), str(dtype)[len("torch.") :])
        assert torch.equal(torch.get_rng_state(), before)

    def test_a_mask_that_does_not_fit_is_refused(self, kind: type[Layer]) -> None:
        layer: Any = kind(keeps=(True, False, True))  # type: ignore[call-arg]
        if not offered(layer.since):
            return
        shape = (2,) * ranks(kind)[-1]
        with pytest.raises(ValueError, match="no seed below 512 makes Masked"):
            constructed(layer)(torch.ones(shape))
        with pytest.raises(ValueError, match="reshape"):
            layer.value(np.ones(shape))


@pytest.mark.parametrize("p", [0.5, 0.25])
@pytest.mark.parametrize("kind", DROPOUTS[:4])
def test_a_dropout_keeps_the_mean(kind: Any, p: float) -> None:
    scaled, dropped = kind(p=p, keeps=(True, False)).value(np.array([3.0, 3.0]))
    assert (1 - p) * scaled + p * dropped == 3


@pytest.mark.parametrize("p", [0.5, 0.25])
@pytest.mark.parametrize("kind", DROPOUTS[4:])
def test_an_alpha_dropout_keeps_a_mean_of_0_and_a_variance_of_1(kind: Any, p: float) -> None:
    # what has them, 1 or -1, is kept with 1 - p; what is dropped becomes one number whatever it was
    y = kind(p=p, keeps=(True, True, False, False)).value(np.array([1.0, -1.0, 1.0, -1.0]))
    chances = np.array([1 - p, 1 - p, p, p]) / 2
    assert y[2] == y[3]
    assert_close([chances @ y, chances @ y**2], [0, 1])


@pytest.mark.parametrize("kind", [kind for kind in IN_JAX if issubclass(kind, Unary)], ids=lambda kind: kind.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_torch_writes_and_passes_on_what_the_layer_says(kind: type[Layer], data: st.DataObject) -> None:
    step = data.draw(steps(kind))
    layer = step.primitive
    assert isinstance(layer, Layer)
    if not offered(layer.since):
        return
    x = torch.tensor(step.inputs[0], requires_grad=True)
    given_ = x * 1
    node = given_.grad_fn
    y = constructed(layer)(given_)
    assert (y is given_) == (layer.writes or layer.passes)
    assert (y.grad_fn is node) == layer.passes
    assert given_._version == layer.writes
    y.backward(torch.tensor(step.cotangents[0]))
    (gradient,), _ = layer.vjp(step.inputs, {}, step.cotangents)
    if kind is not Hardsigmoid:
        assert_close(gradient, x.grad)


@pytest.mark.parametrize("layer", [Hardsigmoid(), Hardsigmoid(inplace=True)], ids=repr)
def test_torch_rounds_the_slope_of_hardsigmoid_to_float32(layer: Layer) -> None:
    # its kernel has 1 / 6 as a float32 constant for every dtype, so that in float64 each gradient is 3e-8 too large
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    eval(layer.source(), {"nn": torch.nn})(x * 1).sum().backward()
    _, dx = of(layer, [1], [1])
    assert dx == 1 / 6
    assert x.grad.tolist() == [float(np.float32(1) / np.float32(6))]
