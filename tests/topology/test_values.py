from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.build import build
from hookcheck.topology.layers.adjustable import Softplus
from hookcheck.topology.model import Input
from hookcheck.topology.values import DOMAINS, WHOLE, draw, parameter_shapes, values

from .samples import SAMPLES, SMALL, twin

SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)
SEEDS = st.integers(0, 2**32 - 1)


def test_the_stream_is_frozen() -> None:
    # The odd multiples of 1/32 in the order of RandomState([seed, crc32(name)]).permutation(96).
    assert draw(0, "x", (2, 3)).tolist() == [[-1.40625, 2.59375, -1.34375], [1.09375, -2.90625, 1.65625]]
    assert draw(0, "fc.weight", (3,)).tolist() == [0.34375, 2.96875, 2.28125]
    assert draw(65535, "x", (2,)).tolist() == [-1.90625, 1.65625]
    assert draw(0, "x", ()).tolist() == -1.40625


def multiples(numbers: np.ndarray[Any, Any], unit: int) -> list[float]:
    """``numbers`` in units of 1/unit."""
    units: list[float] = (numbers * unit).ravel().tolist()
    return units


@pytest.mark.parametrize(
    ("domain", "unit", "grid"),
    [("real", 32, range(-95, 97, 2)), ("positive", 32, range(1, 97, 2)), ("unit", 64, range(1, 65, 2))],
)
class TestGrids:
    @given(seed=SEEDS, name=st.text(), shape=SHAPES)
    def test_numbers_lie_on_the_grid_and_none_comes_twice_before_all_have_come(
        self, domain: str, unit: int, grid: range, seed: int, name: str, shape: tuple[int, ...]
    ) -> None:
        numbers = draw(seed, name, shape, domain)
        assert (numbers.shape, numbers.dtype) == (shape, np.float64)
        units = multiples(numbers, unit)
        assert set(units) <= set(grid)
        assert len(set(units)) == min(len(units), len(grid))

    def test_every_number_that_is_allowed_is_drawn(self, domain: str, unit: int, grid: range) -> None:
        assert sorted(multiples(draw(0, "x", (len(grid),), domain), unit)) == list(grid)

    def test_every_number_is_exact_in_the_coarsest_dtype(self, domain: str, unit: int, grid: range) -> None:
        numbers = torch.tensor(draw(0, "x", (len(grid),), domain))
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            assert torch.equal(numbers.to(dtype).double(), numbers)


@given(SEEDS, SHAPES)
def test_complex_numbers_have_both_parts_on_the_grid_and_different(seed: int, shape: tuple[int, ...]) -> None:
    numbers = draw(seed, "x", shape, "complex")
    assert (numbers.shape, numbers.dtype) == (shape, np.complex128)
    assert {*multiples(numbers.real, 32), *multiples(numbers.imag, 32)} <= set(range(-95, 97, 2))
    assert numbers.size < 10 or not np.array_equal(numbers.real, numbers.imag)


@given(SEEDS, SHAPES)
def test_signs_are_plus_or_minus_one(seed: int, shape: tuple[int, ...]) -> None:
    numbers = draw(seed, "x", shape, "sign")
    assert (numbers.shape, numbers.dtype) == (shape, np.float64)
    assert set(numbers.ravel().tolist()) <= {-1.0, 1.0}


@pytest.mark.parametrize(("domain", "first"), [("index", 0), ("label", 1), ("offsets", 0)])
@given(seed=SEEDS, shape=SHAPES.filter(len), below=st.integers(2, 9))
def test_integers_are_whole_and_less_than_their_bound(
    domain: str, first: int, seed: int, shape: tuple[int, ...], below: int
) -> None:
    numbers = draw(seed, "x", shape, domain, below)
    assert (numbers.shape, numbers.dtype) == (shape, np.int64)
    assert set(numbers.ravel().tolist()) <= set(range(first, below))


@pytest.mark.parametrize(("domain", "first"), [("index", 0), ("label", 1), ("offsets", 0)])
def test_every_integer_that_is_allowed_is_drawn(domain: str, first: int) -> None:
    assert set(draw(0, "x", (200,), domain, 5).tolist()) == set(range(first, 5))


@given(SEEDS, st.integers(0, 9), st.integers(1, 9))
def test_offsets_begin_with_zero_and_never_fall(seed: int, count: int, below: int) -> None:
    numbers = draw(seed, "x", (count,), "offsets", below).tolist()
    assert numbers[:1] == [0][:count]
    assert numbers == sorted(numbers)


@given(SEEDS, st.integers(2, 9), st.integers(1, 9))
def test_bounds_are_offsets_that_end_with_the_end(seed: int, count: int, below: int) -> None:
    numbers = draw(seed, "x", (count,), "bounds", below).tolist()
    assert (numbers[0], numbers[-1]) == (0, below)
    assert numbers == sorted(numbers)


@given(SEEDS, st.integers(1, 4), st.integers(1, 5))
def test_indices_that_end_are_followed_by_nothing_else(seed: int, rows: int, below: int) -> None:
    numbers = draw(seed, "x", (rows, 4), "ended", below)
    assert (numbers.shape, numbers.dtype) == ((rows, 4), np.int64)
    assert set(numbers.ravel().tolist()) <= {-1, *range(below)}
    assert not ((numbers[:, :-1] == -1) & (numbers[:, 1:] != -1)).any()


def test_indices_end_at_every_place() -> None:
    counts = (draw(0, "x", (50, 3), "ended", 2) != -1).sum(1)
    assert set(counts.tolist()) == {0, 1, 2, 3}


@given(SEEDS, st.tuples(*[st.integers(1, 3)] * 4), st.integers(0, 4))
def test_distinct_indices_are_all_different_within_their_first_two(
    seed: int, shape: tuple[int, ...], more: int
) -> None:
    below = shape[2] * shape[3] + more
    numbers = draw(seed, "x", shape, "distinct", below)
    assert (numbers.shape, numbers.dtype) == (shape, np.int64)
    for plane in numbers.reshape(-1, shape[2] * shape[3]).tolist():
        assert len(set(plane)) == len(plane)
        assert set(plane) <= set(range(below))


@given(SEEDS, st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple))
def test_of_a_mask_the_first_of_the_last_axis_is_never_set(seed: int, shape: tuple[int, ...]) -> None:
    numbers = draw(seed, "x", shape, "mask")
    assert (numbers.shape, numbers.dtype) == (shape, bool)
    assert not numbers[..., :1].any()


def test_a_mask_is_set_here_and_there() -> None:
    rest = draw(0, "x", (20, 5), "mask")[:, 1:]
    assert rest.any()
    assert not rest.all()


@given(SEEDS, st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple))
def test_log_probabilities_are_those_of_one_whole_along_the_last_axis(seed: int, shape: tuple[int, ...]) -> None:
    numbers = draw(seed, "x", shape, "log_probability")
    assert numbers.shape == shape
    assert np.all(numbers <= 1e-15)
    assert_close(np.exp(numbers).sum(-1), np.ones(shape[:-1]))


def test_every_domain_has_its_test_here() -> None:
    assert set(DOMAINS) == {
        "real", "positive", "unit", "complex", "sign", "index", "label", "offsets", "bounds", "ended", "distinct",
        "mask", "log_probability",
    }  # fmt: skip


def test_the_domains_of_whole_numbers_are_those_that_hold_no_floating_ones() -> None:
    kinds = {domain: draw(0, "x", (2, 2), domain, 3).dtype.kind for domain in DOMAINS}
    assert {domain for domain, kind in kinds.items() if kind not in "fc"} == set(WHOLE)


def test_a_complex_topology_has_complex_parameters_and_inputs_and_real_ones_beside() -> None:
    numbers = values(SAMPLES["complex64 beside real"])
    assert {name: array.dtype.kind for name, array in numbers.items()} == {
        "weight": "c", "bias": "c", "x": "c", "w": "f", "v": "c"
    }  # fmt: skip
    assert {*multiples(numbers["x"].real, 32), *multiples(numbers["x"].imag, 32)} <= set(range(-95, 97, 2))
    assert not np.array_equal(numbers["x"].real, numbers["x"].imag)


def test_a_tensor_keeps_its_numbers_whatever_else_the_topology_holds() -> None:
    more = replace(SMALL, inputs=(Input("a", (5,)), *SMALL.inputs))
    before, after = values(SMALL), values(more)
    assert set(after) - set(before) == {"a"}
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_names_and_seeds_give_numbers_of_their_own() -> None:
    drawn = [draw(seed, name, (20,)).tolist() for seed in (0, 1) for name in ("x", "y", "x.weight")]
    assert len({tuple(numbers) for numbers in drawn}) == len(drawn)


def test_parameters_come_by_dotted_path_in_the_order_of_torch() -> None:
    assert parameter_shapes(SAMPLES["nested sequential"]) == {
        "0.0.weight": (3, 3),
        "0.0.bias": (3,),
        "1.0.weight": (3, 3),
        "1.0.bias": (3,),
    }
    assert list(parameter_shapes(twin(()))) == ["a.weight", "a.bias", "b.weight", "b.bias"]


def test_what_a_tie_replaces_has_no_numbers_of_its_own() -> None:
    assert list(parameter_shapes(twin((("b", "a"),)))) == ["a.weight", "a.bias"]
    assert list(parameter_shapes(twin((("b.weight", "a.weight"),)))) == ["a.weight", "a.bias", "b.bias"]


def test_parameters_of_containers_and_of_the_module_itself_come_as_torch_lists_them() -> None:
    topology = SAMPLES["own parameters and those of children"]
    net = build(topology, values(topology)).module
    assert parameter_shapes(topology) == {name: tuple(p.shape) for name, p in net.named_parameters()}
    assert list(parameter_shapes(topology)) == [name for name, _ in net.named_parameters()]


def test_no_sum_of_products_of_drawn_numbers_lies_where_the_slope_of_softplus_jumps() -> None:
    drawn = {field.name: field.metadata["options"] for field in fields(Softplus)}
    places = [threshold / beta for threshold in drawn["threshold"] for beta in drawn["beta"]]
    assert min(places) < 3
    assert not [place for place in places if place < 16 and (place * 2**20).is_integer()]
