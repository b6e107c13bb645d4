from __future__ import annotations

import numpy as np
import pytest

from hookcheck.oracle.tolerance import UNIT, assert_close, close, tolerance


def test_tolerance_is_4096_units_of_the_largest_number() -> None:
    assert tolerance(np.array([1.0, -8.0]), "float64", "cpu") == 8 * 2.0**-40
    assert tolerance(np.array([1.0, -8.0]), "float32", "cpu") == 8 * 2.0**-11


def test_small_numbers_are_held_to_the_tolerance_of_one() -> None:
    assert tolerance(np.array([2.0**-30]), "float64", "cpu") == 2.0**-40
    assert tolerance(np.zeros((0, 3)), "float64", "cpu") == 2.0**-40


@pytest.mark.parametrize(("dtype", "device"), UNIT)
def test_numbers_are_close_up_to_the_tolerance_and_not_beyond(dtype: str, device: str) -> None:
    expected = np.array([4.0, 0.0])
    bound = tolerance(expected, dtype, device)
    assert close(expected + bound, expected, dtype, device)
    assert not close(expected + 1.01 * bound, expected, dtype, device)
    assert not close(expected - 1.01 * bound, expected, dtype, device)


def test_shapes_must_be_equal_even_where_they_broadcast() -> None:
    assert not close(np.ones((1, 2)), np.ones((2,)), "float64", "cpu")
    assert not close(np.ones((0, 3)), np.ones((0, 2)), "float64", "cpu")
    assert close(np.ones((0, 3)), np.ones((0, 3)), "float64", "cpu")


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_no_finite_number_is_close_to_itself_alone(number: float) -> None:
    finite, other = np.array([1.0, 1.0]), np.array([number, 1.0])
    assert not close(other, finite, "float64", "cpu")
    assert not close(finite, other, "float64", "cpu")
    assert close(np.array([number, 1 + 1e-14]), other, "float64", "cpu")
    assert not close(np.array([number, 1 + 1e-6]), other, "float64", "cpu")


def test_infinities_of_either_sign_are_not_close() -> None:
    assert not close(np.array([-np.inf, 1.0]), np.array([np.inf, 1.0]), "float64", "cpu")


@pytest.mark.parametrize(
    ("observed", "expected"),
    [(1, 1.0), ([0.5, True], [0.5, 1]), (1j, 1j + 2.0**-41), ([np.nan, -np.inf], [np.nan, -np.inf]), ([], [])],
)
def test_numbers_and_lists_are_held_to_each_other(observed: object, expected: object) -> None:
    assert_close(observed, expected)


@pytest.mark.parametrize(
    ("observed", "expected", "text"),
    [
        (1 + 2.0**-39, 1, r"1\.82e-12 apart, with 9\.09e-13 allowed"),
        (1, [1], r"shape \(\) instead of \(1,\)"),
        ([np.nan, 1], [1, 1], "apart"),
        ([np.nan], [1], "apart"),
        ([np.inf], [-np.inf], "apart"),
    ],
)
def test_what_differs_is_shown(observed: object, expected: object, text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        assert_close(observed, expected)


def test_central_differences_are_allowed_where_they_are_named() -> None:
    assert_close(1 + 2.0**-20, 1, doubled=True)
    with pytest.raises(AssertionError):
        assert_close(1 + 2.0**-19, 1, doubled=True)
