from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hookcheck.topology.model import Input
from hookcheck.topology.values import draw, parameter_shapes, values

from .samples import HAND_MADE, SMALL, twin

SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)
SEEDS = st.integers(0, 2**32 - 1)


def test_the_stream_is_frozen() -> None:
    assert draw(0, "x", (2, 3)).tolist() == [[1.25, -2.75, 0.75], [-0.125, -2.25, 3.0]]
    assert draw(0, "fc.weight", (3,)).tolist() == [1.5, 0.75, -2.25]
    assert draw(65535, "x", (2,)).tolist() == [2.5, -0.125]
    assert draw(0, "x", ()).tolist() == 1.25


@given(SEEDS, st.text(), SHAPES)
def test_numbers_are_eighths_between_minus_three_and_three_and_never_zero(
    seed: int, name: str, shape: tuple[int, ...]
) -> None:
    numbers = draw(seed, name, shape)
    assert numbers.shape == shape
    assert numbers.dtype == np.float64
    assert np.all(numbers * 8 == np.round(numbers * 8))
    assert np.all(numbers != 0)
    assert np.all(abs(numbers) <= 3)


def test_every_number_that_is_allowed_is_drawn() -> None:
    assert set(np.unique(draw(0, "x", (2000,)) * 8)) == {*range(-24, 0), *range(1, 25)}


def test_a_tensor_keeps_its_numbers_whatever_else_the_topology_holds() -> None:
    more = replace(SMALL, inputs=(Input("a", (5,)), *SMALL.inputs))
    before, after = values(SMALL), values(more)
    assert set(after) - set(before) == {"a"}
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_names_and_seeds_give_numbers_of_their_own() -> None:
    drawn = [draw(seed, name, (20,)).tolist() for seed in (0, 1) for name in ("x", "y", "x.weight")]
    assert len({tuple(numbers) for numbers in drawn}) == len(drawn)


def test_parameters_come_by_dotted_path_in_the_order_of_torch() -> None:
    assert parameter_shapes(HAND_MADE["nested sequential"]) == {
        "0.0.weight": (3, 3),
        "0.0.bias": (3,),
        "1.0.weight": (3, 3),
        "1.0.bias": (3,),
    }
    assert list(parameter_shapes(twin(()))) == ["a.weight", "a.bias", "b.weight", "b.bias"]


def test_what_a_tie_replaces_has_no_numbers_of_its_own() -> None:
    assert list(parameter_shapes(twin((("b", "a"),)))) == ["a.weight", "a.bias"]
    assert list(parameter_shapes(twin((("b.weight", "a.weight"),)))) == ["a.weight", "a.bias", "b.bias"]
