"""How a tuple of gradients that is not the expected one is called."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hookcheck.contract.clause import NOTHING
from hookcheck.contract.finding import Finding
from hookcheck.contract.words import shown
from hookcheck.hooks.kinds import KINDS
from hookcheck.networks.case import Case
from hookcheck.networks.gradients import identified, lengths_differ, states_differ, values_differ
from hookcheck.oracle.due import Firing
from hookcheck.oracle.expected import Expected
from hookcheck.probe.observation import Observation
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Backward, Call, Input, Topology
from hookcheck.topology.tree import Ref

RAN = Observation((), {}, {}, {}, (), None)


def linear(dtype: str = "float64") -> Case:
    """A Linear from 2 to 3 features on a batch of 2, with numbers of which no two gradients are alike."""
    inputs = (Input("x", (2, 2), True), Input("v", (2, 3)))
    t = Topology(Linear(2, 3), inputs, (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),))), dtype=dtype)
    numbers = {
        "weight": np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]]),
        "bias": np.array([1.0, 2.0, 3.0]),
        "x": np.array([[1.0, 3.0], [2.0, -1.0]]),
        "v": np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]]),
    }
    return Case(t, KINDS["backward"], "cpu", Expected(t, numbers), RAN, RAN)


CASE = linear()
(FIRING,) = CASE.expected.firings
(G,) = FIRING.grad_input
(V,) = FIRING.grad_output
W, B = (CASE.expected.known_gradients(FIRING.call, FIRING.backward)[name] for name in ("weight", "bias"))
OTHER = np.arange(4.0).reshape(2, 2)
assert G is not None
assert V is not None


def due(*grad_input: Any) -> Firing:
    """The firing with other gradients due, each of an argument like the one that there is."""
    call = replace(FIRING.call, args=FIRING.call.args * len(grad_input))
    return replace(FIRING, call=call, grad_input=grad_input)


def gap(judgement: Any) -> Any:
    return judgement.gap if isinstance(judgement, Finding) else judgement


@pytest.mark.parametrize(
    ("observed", "expected", "expected_gap"),
    [
        ((G,), (G,), None),
        ((G, W), (G,), None),
        ((G + 1e-13,), (G,), None),
        ((G, None), (G, OTHER), None),
        ((G * 1.001,), (G,), "wrong values"),
        ((G * np.nan,), (G,), "wrong values"),
        ((np.where(G.max() == G, np.nan, G),), (G,), "wrong values"),
        ((G * np.inf,), (G,), "wrong values"),
        ((-G,), (G,), "wrong values"),
        ((np.zeros_like(G),), (G,), "wrong values"),
        ((G.astype(np.float32),), (G,), "wrong values"),
        ((OTHER, G), (G, OTHER), "wrong slots"),
        ((G.T,), (G,), "wrong values"),
        ((G.reshape(-1),), (G,), "wrong shape"),
        ((G[None],), (G,), "wrong shape"),
        ((G.sum(0, keepdims=True),), (G,), "wrong shape"),
        ((V,), (G,), "wrong shape"),
        ((B,), (G,), "parameter gradients mixed in"),
        ((G, G, OTHER), (G, OTHER, OTHER), "wrong slots"),
        ((B, G, W.T), (G,), "parameter gradients mixed in"),
        ((B.astype(np.float32),), (G,), "parameter gradients mixed in"),
        ((), (G,), NOTHING),
        ((None,), (G,), NOTHING),
        ((G,), (None,), NOTHING),
        ([G], (G,), NOTHING),
        (None, (G,), NOTHING),
    ],
)
def test_values(observed: Any, expected: Any, expected_gap: Any) -> None:
    firing = due(*expected)
    assert gap(values_differ(replace(CASE), firing, observed, firing.grad_input)) == expected_gap


def test_the_costliest_gap_of_several_is_told() -> None:
    firing = due(G, OTHER)
    finding = values_differ(replace(CASE), firing, (B, OTHER + 100), firing.grad_input)
    assert gap(finding) == "wrong values"


@pytest.mark.parametrize(
    ("observed", "expected", "expected_gap"),
    [
        ((G, None), (G, None), None),
        ((OTHER,), (G,), None),
        ((None,), (G,), "None instead of a gradient"),
        ((G,), (None,), "a gradient instead of None"),
        ((np.zeros_like(G),), (None,), "a gradient instead of None"),
        ((G, None), (G, OTHER), "None instead of a gradient"),
        ((None, G), (G, None), "None instead of a gradient"),
        ((G, W), (G,), None),
        ((), (G,), NOTHING),
        ([None], (G,), NOTHING),
    ],
)
def test_states(observed: Any, expected: Any, expected_gap: Any) -> None:
    assert gap(states_differ(CASE, FIRING, observed, expected)) == expected_gap


@pytest.mark.parametrize(
    ("observed", "expected", "expected_gap"),
    [
        ((OTHER,), (G,), None),
        ((None,), (G,), None),
        ((G, W, B), (G,), "extra entries"),
        ((G, None), (G,), "extra entries"),
        ((), (G,), "missing entries"),
        ((G,), (G, None), "missing entries"),
        ([G, W], (G,), NOTHING),
    ],
)
def test_lengths(observed: Any, expected: Any, expected_gap: Any) -> None:
    assert gap(lengths_differ(replace(CASE), FIRING, observed, expected)) == expected_gap


@pytest.mark.parametrize(
    ("observed", "names"),
    [
        ((B, G, W.T), ("bias", "input[0]", "weight transposed")),
        ((G,), ("input[0]",)),
        ((V.reshape(-1),), ("output[0] reshaped",)),
        ((None, OTHER), ("None", "unknown")),
        (("text",), ("unknown",)),
        ((G.astype(np.float32),), ("input[0] as float32",)),
        ((OTHER.astype(np.float32),), ("unknown",)),
        ((B.astype(np.float32),), ("bias as float32",)),
        ((), ()),
    ],
)
def test_every_entry_is_called_by_what_it_is(observed: Any, names: tuple[str, ...]) -> None:
    assert identified(replace(CASE), FIRING, observed) == names


def test_the_names_are_told_with_the_numbers() -> None:
    finding = values_differ(replace(CASE), FIRING, (B,), (G,))
    assert isinstance(finding, Finding)
    assert finding.words()[1] == "([9.0, 18.0, 36.0],), which is (bias,)"


def test_a_gradient_in_more_than_the_dtype_of_the_topology_is_none_of_its_own() -> None:
    case = linear("float32")
    assert case.close(G.astype(np.float32), G, "float32")
    assert not case.close(G, G, "float32")


def test_short_tensors_are_shown_and_long_ones_begun() -> None:
    assert shown((G, None)) == "([[35.0, 56.0], [280.0, 448.0]], None)"
    assert shown((np.arange(8.0).reshape(2, 4),)) == "([0, 1, 2, …] of shape (2, 4),)"
    assert shown(()) == "()"


@pytest.mark.parametrize("observed", [None, "text", (), [], {}])
def test_what_is_no_tensor_is_close_to_none(observed: Any) -> None:
    assert not CASE.close(observed, G, "float64")
