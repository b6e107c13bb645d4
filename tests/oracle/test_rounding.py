"""How much of a difference is rounding, measured on the very network: what is let pass, and what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.rounding import NOISE, TRIALS, Noise
from hookcheck.oracle.tolerance import UNIT, close
from hookcheck.topology.build import build
from hookcheck.topology.last_node import Release
from hookcheck.topology.layers.activation import Mish, ReLU6, Sigmoid
from hookcheck.topology.layers.adjustable import Threshold
from hookcheck.topology.layers.attention import MultiheadAttention
from hookcheck.topology.layers.distance import CosineSimilarity
from hookcheck.topology.layers.loss_margins import CosineEmbeddingLoss
from hookcheck.topology.layers.normalisation import GroupNorm, LayerNorm
from hookcheck.topology.model import Apply, Backward, Call, Composite, Grad, Input, Topology
from hookcheck.topology.ops import Add, Mul, Sum
from hookcheck.topology.ops.elementwise import Clamp
from hookcheck.topology.ops.reduction import MaxOver
from hookcheck.topology.primitive import Layer
from hookcheck.topology.tree import Literal, Ref
from hookcheck.topology.values import values

X, Y, V, U = Ref("x"), Ref("y"), Ref("v"), Ref("u")
NORMALISED = (Apply("s", Add(), (X, U)), Call("y", "", (Ref("s"),)), Backward((Y,), (V,)))


class TestNoise:
    @pytest.mark.parametrize(("dtype", "device"), UNIT)
    def test_it_is_up_to_some_units_of_the_largest_number(self, dtype: str, device: str) -> None:
        array = np.array([[8.0, 0.0, -1.0]] * 200)
        for trial in range(TRIALS):
            moved = np.abs(Noise(trial, dtype, device, {}).moved(array, False) - array)
            assert moved.shape == array.shape
            assert moved.max() <= 8 * NOISE[dtype] * UNIT[dtype, device] + 1e-15
            assert moved.max() > 4 * NOISE[dtype] * UNIT[dtype, device]
            assert moved[:, 1].max() > 0

    def test_it_is_the_same_each_time_and_another_for_each_trial(self) -> None:
        array = np.arange(1.0, 5.0)
        first, again, other = (Noise(trial, "float32", "cpu", {}).moved(array, False).tolist() for trial in (0, 0, 1))
        assert first == again
        assert first != other

    @pytest.mark.parametrize("array", [np.array([1, 2]), np.array([True, False]), np.zeros((0, 2))])
    def test_whole_numbers_masks_and_nothing_are_left_alone(self, array: Any) -> None:
        for exact in (False, True):
            assert Noise(0, "float32", "cpu", {}).moved(array, exact) is array

    def test_where_zeros_are_exact_each_number_moves_by_units_of_its_own(self) -> None:
        array = np.array([[8.0, 0.0, -1.0]] * 200)
        moved = np.abs(Noise(0, "float32", "cpu", {}).moved(array, True) - array).max(0)
        assert moved[1] == 0
        assert 16 * 2.0**-23 < moved[0] <= 32 * 2.0**-23
        assert 2 * 2.0**-23 < moved[2] <= 4 * 2.0**-23


def normalised(x: list[float], dtype: str) -> tuple[Expected, np.ndarray[Any, Any]]:
    """A LayerNorm of ``1 + x`` without anything to steady it: the oracle, and the gradient of ``x`` that torch finds.

    What lies near another must be the outcome of a step: leaves are exact, and no noise falls on them.
    """
    layer = LayerNorm((len(x),), eps=1e-30, elementwise_affine=False)
    inputs = (Input("x", (1, len(x)), True), Input("u", (1,)), Input("v", (1, len(x))))
    topology = Topology(layer, inputs, NORMALISED, dtype=dtype)
    numbers = {"x": np.array([x]), "u": np.array([1.0]), "v": np.array([[1.0, -2.0, 0.5, 3.0]])}
    built = build(topology, numbers)
    built.run()
    gradient = built.inputs["x"].grad
    assert gradient is not None
    return Expected(topology, numbers), gradient.double().numpy()


class TestNearlyEqualNumbers:
    """Their spread of some 2^-18 lies but few bits of float32 above the rounding of their mean."""

    NEARLY_EQUAL = tuple(k * 2.0**-20 for k in (0, 1, 3, 7))
    APART = (0.0, 1.0, 3.0, 7.0)

    def test_the_table_says_no_and_the_network_explains_it(self) -> None:
        oracle, observed = normalised([*self.NEARLY_EQUAL], "float32")
        expected = oracle.leaf_gradients["x"]
        bumped = expected + 2.0**-7 * np.abs(expected).max()
        assert not close(bumped, expected, "float32", "cpu")
        assert oracle.close(bumped, expected)
        assert oracle.close(observed, expected)

    def test_the_same_difference_is_refused_where_nothing_amplifies_it(self) -> None:
        oracle, observed = normalised([*self.APART], "float32")
        expected = oracle.leaf_gradients["x"]
        assert oracle.close(observed, expected)
        assert not oracle.close(expected + 2.0**-7 * np.abs(expected).max(), expected)

    def test_in_float64_the_same_numbers_are_far_enough_apart(self) -> None:
        oracle, observed = normalised([*self.NEARLY_EQUAL], "float64")
        expected = oracle.leaf_gradients["x"]
        assert oracle.close(observed, expected)
        assert not oracle.close(expected * (1 + 2.0**-9), expected)

    @pytest.mark.parametrize("factor", [-1.0, 0.0, 100.0, np.nan, np.inf])
    def test_what_no_rounding_explains_is_refused_still(self, factor: float) -> None:
        for dtype, numbers in (("float32", self.APART), ("float64", self.APART), ("float64", self.NEARLY_EQUAL)):
            oracle, _ = normalised([*numbers], dtype)
            expected = oracle.leaf_gradients["x"]
            assert not oracle.close(expected * factor, expected)
        oracle, _ = normalised([*self.NEARLY_EQUAL], "float32")
        expected = oracle.leaf_gradients["x"]
        if abs(factor) > 1 or np.isnan(factor):
            assert not oracle.close(expected * factor, expected)

    def test_a_gradient_of_another_shape_or_from_elsewhere_gets_no_such_allowance(self) -> None:
        oracle, _ = normalised([*self.NEARLY_EQUAL], "float32")
        expected = oracle.leaf_gradients["x"]
        bumped = expected + 2.0**-9 * np.abs(expected).max()
        assert not oracle.close(bumped[0], expected)
        assert not oracle.close(bumped, expected.copy())


class TestCancellationWithinAStep:
    """The cosine of two single numbers is 1 or -1 whatever they are: its slope is the difference of two large terms."""

    def test_what_cancels_counts_however_it_is_rounded(self) -> None:
        small = 1e-5
        oracle, observed = cosine(small)
        expected = oracle.leaf_gradients["x"]
        assert expected.tolist() == [[0.0]]
        assert not close(np.array([[4e-12]]), expected, "float64", "cpu")
        assert oracle.close(np.array([[4e-12]]), expected)
        assert oracle.close(observed, expected)

    @pytest.mark.parametrize("off", [1.0, 1e-6])
    def test_and_no_more_than_that(self, off: float) -> None:
        oracle, _ = cosine(1e-5)
        assert not oracle.close(np.array([[off]]), oracle.leaf_gradients["x"])
        oracle, _ = cosine(1.5)
        assert not oracle.close(np.array([[4e-12]]), oracle.leaf_gradients["x"])

    @pytest.mark.parametrize(("scale", "agrees"), [(1.0, False), (64.0, True)])
    def test_weights_that_attend_to_one_key_alone_cancel(self, scale: float, agrees: bool) -> None:
        """Of large numbers one weight is 1 and the others are 0, and the slope is the difference of two equal sums,
        which a fused kernel works out in two ways; queries and keys of thousands multiply what that leaves."""
        layer = MultiheadAttention(4, 1, sources=1, need_weights=False)
        inputs = (Input("x", (3, 1, 4), True), Input("v", (3, 1, 4)))
        call = Call("y", "", (X,) * 3, (("need_weights", Literal(False)),))
        topology = Topology(layer, inputs, (call, Backward((Ref("y", (0,)),), (V,))))
        numbers = values(topology)
        numbers = {**numbers, "x": scale * numbers["x"]}
        built = build(topology, numbers)
        built.run()
        oracle = Expected(topology, numbers)
        expected = oracle.leaf_gradients["in_proj_weight"]
        assert oracle.close(built.module.in_proj_weight.grad.double().numpy(), expected)
        off = 1e-8 * np.array([[1.0]] * 8 + [[0.0]] * 4)  # of queries and keys, not of values
        assert not close(expected + off, expected, "float64", "cpu")
        assert oracle.close(expected + off, expected) is agrees
        assert not oracle.close(expected + off[::-1], expected)

    @pytest.mark.parametrize(
        ("dtype", "off", "either"), [("float32", 0.0, True), ("float32", 1.0, False), ("float64", 0.0, False)]
    )
    def test_what_cancels_forward_may_go_either_way_at_a_kink(self, dtype: str, off: float, either: bool) -> None:
        """One less the cosine of two single numbers is what steadies it, and in float32 whatever rounding leaves."""
        module = Composite(
            (("loss", CosineEmbeddingLoss()), ("gate", Threshold(0.0, 0.0))),
            ("x", "b", "sign", "u"),
            (
                Call("lost", "loss", (X, Ref("b"), Ref("sign"))),
                Apply("sum", Add(), (Ref("lost"), U)),
                Call("h", "gate", (Ref("sum"),)),
            ),
            Ref("h"),
        )
        inputs = (Input("x", (1, 1)), Input("b", (1, 1)), Input("sign", (1,), domain="sign"), Input("u", (), True))
        main = (Call("y", "", (X, Ref("b"), Ref("sign"), U)), Backward((Y,), (V,)))
        numbers = {"x": np.array([[-1.4]]), "b": np.array([[-2.2]]), "sign": np.array([1.0]), "u": np.array(off)}
        topology = Topology(module, (*inputs, Input("v", ())), main, dtype=dtype)
        oracle = Expected(topology, {**numbers, "v": np.array(1.0)})
        expected = oracle.leaf_gradients["u"]
        assert expected == 1
        assert oracle.close(np.array(0.0), expected) is either


def cosine(x: float) -> tuple[Expected, np.ndarray[Any, Any]]:
    """The oracle on the cosine of ``x`` and 3, and the gradient of ``x`` that torch finds."""
    inputs = (Input("x", (1, 1), True), Input("b", (1, 1)), Input("v", (1,)))
    topology = Topology(CosineSimilarity(), inputs, (Call("y", "", (X, Ref("b"))), Backward((Y,), (V,))))
    numbers = {"x": np.array([[x]]), "b": np.array([[3.0]]), "v": np.array([1.0])}
    built = build(topology, numbers)
    built.run()
    gradient = built.inputs["x"].grad
    assert gradient is not None
    return Expected(topology, numbers), gradient.numpy()


class TestOverflow:
    @pytest.mark.parametrize(
        ("largest", "dtype", "overflows"),
        [
            (1e18, "float32", False), (1e19, "float32", True), (1e19, "float64", False), (1e160, "float64", True),
            (np.inf, "float64", True), (np.nan, "float64", True), (3e4, "float16", False), (6e4, "float16", True),
            (1e18, "bfloat16", False), (1e19, "bfloat16", True),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("of", ["x", "v"])
    def test_numbers_overflow_before_they_are_too_large(
        self, largest: float, dtype: str, overflows: bool, of: str
    ) -> None:
        """Those of forward and those of backward."""
        inputs = (Input("x", (2,), True), Input("u", (2,)), Input("v", (2,)))
        main = (Apply("y", Add(), (X, U)), Backward((Y,), (V,)))
        numbers = {name: np.ones(2) for name in "xuv"}
        numbers[of] = np.array([1.0, largest])
        assert Expected(Topology(Composite((), (), (), X), inputs, main, dtype=dtype), numbers).overflows is overflows

    @pytest.mark.parametrize(("x", "used", "on_a_kink"), [
        (0.5, True, True), (-0.25, True, True), (0.0, True, False), (0.75, True, False), (0.5, False, False),
    ])  # fmt: skip
    def test_at_a_bound_of_clamp_releases_differ(self, x: float, used: bool, on_a_kink: bool) -> None:
        """Where a gradient comes through it; the slope was 1 there and is 0 since 2.14 (pytorch#191142)."""
        main = (Apply("y", Clamp(-0.25, 0.5), (X,)), Apply("z", Add(), (X, U)), Backward((Y if used else Ref("z"),)))
        inputs = (Input("x", (1,), True), Input("u", (1,)))
        numbers = {"x": np.array([x]), "u": np.zeros(1)}
        assert Expected(Topology(Composite((), (), (), X), inputs, main), numbers).disputed is on_a_kink

    @pytest.mark.parametrize(("x", "dtype", "overflows"), [
        (-709.0, "float64", True), (700.0, "float64", False), (88.0, "float32", True), (-80.0, "float32", False),
    ])  # fmt: skip
    def test_where_a_gradient_is_differentiated_exponentials_overflow(
        self, x: float, dtype: str, overflows: bool
    ) -> None:
        main = (
            Call("y", "", (X,)), Grad("g", (Y,), (X,), (V,), create_graph=True),
            Apply("l", Sum(), (Ref("g", (0,)),)), Backward((Ref("l"),)),
        )  # fmt: skip
        inputs = (Input("x", (1,), True), Input("v", (1,)))
        numbers = {"x": np.array([x]), "v": np.array([1.0])}
        assert Expected(Topology(Mish(), inputs, main, dtype=dtype), numbers).overflows is overflows


class TestUnderflow:
    @pytest.mark.parametrize(("x", "dtype", "either"), [
        (-116.0, "float32", True), (-116.0, "float64", False), (-80.0, "float32", False), (-20.0, "float16", True),
        (-8.0, "float16", False), (-116.0, "bfloat16", True), (-20.0, "bfloat16", False),
    ])  # fmt: skip
    def test_what_comes_out_as_zero_may_go_either_way_at_a_kink_there(self, x: float, dtype: str, either: bool) -> None:
        """A sigmoid of -116 is some 10^-51, which float32 does not have."""
        module = Composite(
            (("squash", Sigmoid()), ("gate", ReLU6())),
            ("x", "u"),
            (Call("s", "squash", (X,)), Apply("p", Mul(), (Ref("s"), U)), Call("h", "gate", (Ref("p"),))),
            Ref("h"),
        )
        inputs = (Input("x", (1,), True), Input("u", (1,), True), Input("v", (1,)))
        topology = Topology(module, inputs, (Call("y", "", (X, U)), Backward((Y,), (V,))), dtype=dtype)
        oracle = Expected(topology, {"x": np.array([x]), "u": np.array([1.0]), "v": np.array([1.0])})
        (expected,) = next(firing.grad_input for firing in oracle.firings if firing.call.path == "gate")
        assert expected is not None
        assert expected.tolist() == [1.0]
        assert oracle.close(np.array([0.0]), expected) is either


def tied(x: list[float], u: list[float], times: int = 1) -> Expected:
    """The largest of ``x + u``, and so many backwards from it."""
    inputs = (Input("x", (len(x),), True), Input("u", (len(x),)))
    backwards = (Backward((Ref("m", (0,)),), retain_graph=True),) * times
    main = (Apply("s", Add(), (X, U)), Apply("m", MaxOver(0, False), (Ref("s"),)), *backwards)
    numbers = {"x": np.array(x), "u": np.array(u)}
    return Expected(Topology(Composite((), (), (), X), inputs, main), numbers)


class TestTies:
    def test_of_two_equal_numbers_either_may_be_the_largest(self) -> None:
        oracle = tied([1.0, 2.0, 0.0], [1.0, 0.0, 0.0])
        expected = oracle.leaf_gradients["x"]
        assert expected.tolist() == [1, 0, 0]
        assert oracle.close(np.array([0.0, 1.0, 0.0]), expected)

    def test_so_it_is_in_each_sum_of_several_passes(self) -> None:
        oracle = tied([1.0, 2.0, 0.0], [1.0, 0.0, 0.0], times=3)
        for number, call in enumerate(oracle.accumulations, 1):
            assert call.gradient is not None
            assert call.gradient.tolist() == [number, 0, 0]
            assert oracle.close(np.array([0.0, number, 0.0]), call.gradient)

    def test_a_third_that_is_smaller_may_not(self) -> None:
        oracle = tied([1.0, 2.0, 0.0], [1.0, 0.0, 0.0])
        expected = oracle.leaf_gradients["x"]
        assert not oracle.close(np.array([0.0, 0.0, 1.0]), expected)
        assert not oracle.close(np.array([1.0, 0.0, 1e-9]), expected)

    def test_without_a_tie_the_largest_is_the_largest(self) -> None:
        oracle = tied([1.0, 2.0, 0.0], [1.0, 0.125, 0.0])
        expected = oracle.leaf_gradients["x"]
        assert expected.tolist() == [0, 1, 0]
        assert not oracle.close(np.array([1.0, 0.0, 0.0]), expected)

    @pytest.mark.parametrize(("observed", "agrees"), [(0, True), (1, True), (2, False), (5, False)])
    def test_so_may_its_index_be_that_of_either(self, observed: int, agrees: bool) -> None:
        oracle = tied([1.0, 2.0, 0.0], [1.0, 0.0, 0.0])
        expected = oracle.trace.names["m"][1].array
        assert expected.tolist() == 0
        assert oracle.close(np.array(observed), expected) == agrees
        assert not oracle.close(np.array(1), expected, measured=False)

    def test_and_without_a_tie_there_is_one_index(self) -> None:
        oracle = tied([1.0, 2.0, 0.0], [1.0, 0.125, 0.0])
        expected = oracle.trace.names["m"][1].array
        assert expected.tolist() == 1
        assert not oracle.close(np.array(0), expected)


def test_gradients_of_gradients_are_held_to_what_central_differences_leave() -> None:
    # y = x³ as x·x·x; the gradient is 3x², that of its sum 6x: at x = 2, 12.
    main = (
        Apply("p", Mul(), (X, X)), Apply("y", Mul(), (Ref("p"), X)),
        Grad("g", (Y,), (X,), (V,), create_graph=True), Apply("l", Sum(), (Ref("g", (0,)),)), Backward((Ref("l"),)),
    )  # fmt: skip
    topology = Topology(Composite((), (), (), X), (Input("x", (1,), True), Input("v", (1,))), main)
    oracle = Expected(topology, {"x": np.array([2.0]), "v": np.array([1.0])})
    expected = oracle.leaf_gradients["x"]
    assert oracle.trace.doubled
    assert oracle.close(np.array([12.0]), expected)
    assert not oracle.close(np.array([12.001]), expected)
    x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(x * x * x, x, torch.ones(1, dtype=torch.float64), create_graph=True)
    g.sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert oracle.close(x.grad.numpy(), expected)


@pytest.mark.parametrize(
    ("numbers", "dtype", "release", "lost"),
    [
        ([1, 1, 1], "float32", (1, 9), True),
        ([1, 1, 1], "float32", (1, 10), False),
        ([1, 1, 1], "float64", (1, 9), False),
        ([1, 2, 3], "float32", (1, 9), False),
    ],
)
@pytest.mark.parametrize("norm", [LayerNorm((3,)), GroupNorm(1, 1)])
def test_the_variance_of_equal_numbers_is_lost_in_float32_up_to_1_9(
    norm: Layer, numbers: list[float], dtype: str, release: Release, lost: bool
) -> None:
    x = Input("x", (1, 1, 3), True)
    topology = Topology(norm, (x,), (Call("y", "", (X,)),), dtype=dtype)
    given = {**values(topology), "x": np.array([[numbers]], float)}
    assert Expected(topology, given, release=release).overflows is lost
