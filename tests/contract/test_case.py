"""Which event answers which firing, and what a call has about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hookcheck.contract.case import Case, call_features
from hookcheck.probe.observation import Event
from hookcheck.topology.layers.activation import Sigmoid
from hookcheck.topology.model import Sequential

from .cases import (
    CHAIN,
    TIMES,
    TWICE,
    UNDER_NO_GRAD,
    case,
    numbers,
    with_events,
    with_gradients,
)


def answers(c: Case) -> dict[str, int | None]:
    """The number of the event that answers each call."""
    return {p.firing.call.subject: p.event.number if p.event else None for p in c.pairs}


def test_each_firing_gets_the_event_of_its_module() -> None:
    assert answers(case(CHAIN)) == {"net#0": 0, "net.a#0": 0, "net.b#0": 0}


def test_calls_of_one_module_are_told_apart_by_their_gradients() -> None:
    """The second call of ``a`` comes first in backward."""
    twice = case(TWICE)
    assert [event.path for event in twice.observed.events] == ["a", "a", ""]
    assert answers(twice) == {"net#0": 0, "net.a#0": 1, "net.a#1": 0}


def test_so_they_are_in_whatever_order_they_come() -> None:
    first, second, root = case(TWICE).observed.events
    assert answers(with_events(case(TWICE), second, first, root)) == {"net#0": 0, "net.a#0": 1, "net.a#1": 0}


def test_an_event_with_wrong_gradients_goes_to_the_call_that_is_left() -> None:
    wrong = with_gradients(case(TWICE), numbers(99), place=0)
    assert answers(wrong) == {"net#0": 0, "net.a#0": 1, "net.a#1": 0}


def test_a_single_call_is_answered_whatever_the_event_carries() -> None:
    (pair,) = with_gradients(case(), ("text",), [None]).pairs
    assert pair.event is not None


def test_a_call_without_event_is_left_unanswered() -> None:
    twice = case(TWICE)
    assert answers(with_events(twice, *twice.observed.events[1:])) == {"net#0": 0, "net.a#0": 1, "net.a#1": None}


def test_an_event_of_another_path_answers_nothing() -> None:
    stray = Event("full_backward", "elsewhere", 0, None, ())
    assert answers(with_events(case(), stray)) == {"net#0": None}


def test_one_event_answers_one_firing_only() -> None:
    twice = case(TWICE)
    events = [p.event for p in twice.pairs]
    assert len({id(event) for event in events}) == len(events)


def features(c: Case, subject: str) -> dict[str, str]:
    (call,) = [call for call in c.expected.trace.calls if call.subject == subject]
    return {key: word for key, words in call_features(call).items() for word in words}


def test_features_of_a_layer() -> None:
    assert features(case(), "net#0") == {
        "module": "Linear",
        "mode": "grad",
        "inputs": "all",
        "outputs": "all",
        "steps": "one",
        "last": "Linear",
        "rank": "1",
        "bias": "no",
    }


def test_features_of_containers() -> None:
    found = features(case(Sequential((TIMES, Sigmoid()))), "net#0")
    assert (found["module"], found["steps"], found["last"], "bias" in found) == ("Sequential", "many", "Sigmoid", False)
    assert features(case(CHAIN), "net#0")["module"] == "Composite"


@pytest.mark.parametrize(("grad", "inputs"), [("x", "all"), ("", "none")])
def test_features_of_the_inputs(grad: str, inputs: str) -> None:
    assert features(case(grad=grad), "net#0")["inputs"] == inputs


def test_features_under_no_grad_know_no_steps() -> None:
    assert features(case(main=UNDER_NO_GRAD), "net#0") == {
        "module": "Linear",
        "mode": "no_grad",
        "inputs": "all",
        "outputs": "none",
    }


def test_a_case_has_the_features_of_all_its_calls() -> None:
    found = case(CHAIN).features
    assert found["module"] == {"Composite", "Linear"}
    assert found["steps"] == {"one", "many"}
    assert found["reached"] == {"output"}


@pytest.mark.parametrize("outputs", [None, (), [np.array([7.0])], (None,), ("text",), numbers(8)])
def test_what_does_not_carry_the_gradient_of_the_output(outputs: Any) -> None:
    c = with_gradients(case(), ..., outputs)
    assert not c.carries_output(c.observed.events[0], np.array([7.0]))
