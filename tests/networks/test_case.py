"""Which event answers which firing, and what a call has about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hookcheck.hooks.kinds import KINDS
from hookcheck.networks.case import Case
from hookcheck.networks.features import call_features, network_features
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.tolerance import tolerance, within
from hookcheck.probe.observation import Event
from hookcheck.probe.run import observe
from hookcheck.topology.layers.activation import Sigmoid
from hookcheck.topology.layers.batch_norm import InstanceNorm2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Leak, Sequential, Topology, Within
from hookcheck.topology.ops.arithmetic import Add, Maximum, Minimum
from hookcheck.topology.ops.elementwise import Neg
from hookcheck.topology.ops.views import Permute
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

from .cases import (
    AROUND_TWO,
    CALLED,
    CHAIN,
    EQUAL,
    FROM_Y,
    TIMES,
    TWICE,
    UNDER_NO_GRAD,
    WRITE,
    V,
    X,
    again,
    case,
    gaps,
    net,
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


def test_of_calls_with_equal_gradients_the_latest_comes_first() -> None:
    """Nothing tells them apart, and backward meets the latest first."""
    assert answers(case(EQUAL)) == {"net#0": 0, "net.a#0": 1, "net.a#1": 0}


def test_an_event_that_fits_one_of_them_goes_there_whenever_it_comes() -> None:
    """Of three events the one that is off is left to the call that no other fits."""
    equal = case(EQUAL)
    first, second, root = equal.observed.events
    off = first._replace(arguments=(numbers(99), numbers(7)))
    event_of = {p.firing.call.subject: p.event for p in with_events(equal, off, second, root).pairs}
    assert (event_of["net.a#1"], event_of["net.a#0"]) == (second, off)


def test_an_event_may_have_none_where_the_place_is_open() -> None:
    """Of two backwards the first leaves an output of ``two`` unused: zeros or None, it is that backward's event."""
    module, (called, first) = AROUND_TWO
    both = Backward((Ref("y", (0,)), Ref("y", (1,))), (V, V))
    twice = case(module, (called, replace(first, retain_graph=True), both))
    places = [i for i, event in enumerate(twice.observed.events) if event.path == "two"]
    assert twice.observed.events[places[0]].arguments[1] == numbers(7, 0)
    for given in (numbers(7, 0), numbers(7, None)):
        variant = with_gradients(twice, ..., given, place=places[0])
        swapped = list(variant.observed.events)
        swapped[places[0]], swapped[places[1]] = swapped[places[1]], swapped[places[0]]
        of_two = [p for p in with_events(twice, *swapped).pairs if p.firing.call.path == "two"]
        assert [p.event.arguments[1][1] if p.event else ... for p in of_two] == [given[1], 7]


def test_a_second_look_pairs_what_rounding_explains_after_what_the_table_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that are off come in an order that tells nothing; only what rounding does says which call each is for."""
    twice = case(TWICE)
    first, second, root = twice.observed.events
    off = [e._replace(arguments=(tuple(g * 1.01 for g in e.arguments[0]), e.arguments[1])) for e in (second, first)]
    monkeypatch.setattr(Expected, "close", lambda self, o, e, measured=True: within(o, e, 0.02 * e if measured else 0))
    looked = with_events(twice, *off, root)
    assert [p.event for p in looked.pairs if p.firing.call.path == "a"] == [off[1], off[0]]
    again = [p.event for p in replace(looked, measured=True).pairs if p.firing.call.path == "a"]
    assert again == [off[0], off[1]]


def test_events_that_may_stand_in_their_order_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the table the second one fits both calls and the first one neither; within rounding each fits both."""
    twice = case(TWICE)
    first, second, _ = twice.observed.events
    monkeypatch.setattr(Case, "_carries", lambda self, event, firing, measured: measured or event is second)
    of_a = [p.event for p in replace(twice, measured=True).pairs if p.firing.call.path == "a"]
    assert of_a == [second, first]


def test_other_modules_tell_in_which_backward_an_event_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of ``a`` carry the gradients of both backwards, those of ``b`` and of the net those of their own."""
    twice = case(CHAIN, (CALLED, replace(FROM_Y, retain_graph=True), FROM_Y))
    monkeypatch.setattr(
        Case, "_carries", lambda self, event, firing, measured: event.path == "a" or event.number == firing.backward
    )
    events = twice.observed.events
    assert [(event.path, event.number) for event in events] == [(p, n) for n in (0, 1) for p in ("b", "a", "")]
    for number, event in ((0, events[1]), (1, events[4])):
        others = [e for e in events if e.path != "a" or e is event]
        of_a = {p.firing.backward: p.event for p in with_events(twice, *others).pairs if p.firing.call.path == "a"}
        assert of_a == {number: event, 1 - number: None}
    of_b = {
        p.firing.backward: p.event for p in with_events(twice, *events[::-1][:-1]).pairs if p.firing.call.path == "b"
    }
    assert of_b == {0: None, 1: events[3]}  # an order that contradicts them leaves it to the gradients


def test_one_event_answers_one_firing_only() -> None:
    twice = case(TWICE)
    events = [p.event for p in twice.pairs]
    assert len({id(event) for event in events}) == len(events)


def features(c: Case, subject: str) -> dict[str, str]:
    (call,) = [call for call in c.expected.trace.calls if call.subject == subject]
    return {key: word for key, words in call_features(call).items() for word in words}


def test_gradients_that_are_both_off_by_rounding_differ_by_rounding() -> None:
    """In opposite directions, so that they are further from one another than the table says."""
    c = case()
    expected = c.expected.leaf_gradients["x"]
    off = 0.9 * tolerance(expected, "float64", "cpu")
    for times, gap in ((1, "other rounding"), (2, "wrong values")):
        differing = again(c, {"gradients": {"x": expected + times * off}}, gradients={"x": expected - off})
        assert gaps(differing, "OB-03") == [("OB-03", gap)]


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
    words = features(case(Sequential((TIMES, Sigmoid()))), "net#0")
    assert (words["module"], words["steps"], words["last"], "bias" in words) == ("Sequential", "many", "Sigmoid", False)
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
    chain_features = case(CHAIN).features
    assert chain_features["module"] == {"Composite", "Linear"}
    assert chain_features["steps"] == {"one", "many"}
    assert chain_features["reached"] == {"output"}


def test_a_case_knows_whether_joined_boundaries_reach_leaves_that_have_no_gradient_without_them() -> None:
    assert case(CHAIN).features["leaves"] == {"alone"}
    assert case(*AROUND_TWO).features["leaves"] == {"joined by outputs"}


def test_a_call_has_what_was_reached_of_the_firings_of_its_module() -> None:
    leaking = net(Call("g", "a", (X,)), Leak("g", Ref("g")), Call("h", "b", (Ref("g"),)))
    inside = case(leaking, (CALLED, Backward((Ref("leaked", ("g",)),), (V,))))
    reached = {call.path: inside.call_features(call)["reached"] for call in inside.expected.trace.calls}
    assert reached == {"": {"inside"}, "a": {"output"}, "b": frozenset()}


def test_a_write_in_place_is_forbidden_under_full_hooks_and_nothing_is_due_behind_it() -> None:
    main = (CALLED, Backward((Ref("y"),), (V,), retain_graph=True), *WRITE)
    full, legacy = case(main=main), case(main=main, kind="backward")
    assert (full.forbidden, legacy.forbidden, case().forbidden) == (True, False, False)
    assert [f.backward for f in full.firings] == [0]
    assert [f.backward for f in legacy.firings] == [0, 1]


@pytest.mark.parametrize("outputs", [None, (), [np.array([7.0])], (None,), ("text",), numbers(8)])
def test_what_does_not_carry_the_gradient_of_the_output(outputs: Any) -> None:
    c = with_gradients(case(), ..., outputs)
    assert not c.carries_output(c.observed.events[0], np.array([7.0]))


ONE, TWO = (1, 2, 3, 3), (2, 2, 3, 3)
"""The shapes of a batch of one image and of two."""


@pytest.mark.parametrize(
    ("shape", "layer", "op", "layout"),
    [
        (ONE, InstanceNorm2d(2), Permute((0, 1, 3, 2)), {"reordered", "ambiguous"}),
        (TWO, InstanceNorm2d(2), Permute((0, 1, 3, 2)), {"reordered"}),
        (ONE, InstanceNorm2d(2), Neg(), {"plain"}),
        (ONE, Sigmoid(), Permute((0, 1, 3, 2)), {"ambiguous"}),
        (TWO, Sigmoid(), Permute((0, 1, 3, 2)), {"plain"}),
        ((2, 2, 1, 3), Sigmoid(), Permute((1, 0, 2, 3)), {"ambiguous"}),
        ((1, 2, 2), Sigmoid(), Permute((0, 2, 1)), {"plain"}),
    ],
)
def test_gradients_are_reordered_where_a_network_turns_what_it_normalises(
    shape: tuple[int, ...], layer: Any, op: Any, layout: set[str]
) -> None:
    """Every subject of the network has the word, so that the ledger can go by it."""
    body = (Call("h", "layer", (X,)), Apply("z", op, (Ref("h"),)))
    module = Composite((("layer", layer),), ("x",), body, Ref("z"))
    inputs = (Input("x", shape, True), Input("v", shape))
    main = (Call("y", "", (X,)), Backward((Ref("y"),), (V,)))
    t = Topology(module, inputs, main)
    numbers = values(t)
    unseen = observe(t, numbers, None)
    turning = Case(t, KINDS["full_backward"], "cpu", Expected(t, numbers), unseen, unseen)
    assert turning.network_features["layout"] == turning.features["layout"] == layout


@pytest.mark.parametrize(
    ("call", "inside"),
    [
        (CALLED, "nothing"),
        (Within("no_grad", (CALLED,)), "nothing"),
        (Within("autocast", (CALLED,)), "autocast"),
        (replace(CALLED, context="thread"), "thread"),
    ],
)
def test_what_a_network_runs_inside_of(call: Any, inside: str) -> None:
    assert case(main=(call,)).network_features["inside"] == {inside}


def test_a_call_stands_for_all_uses_of_its_module() -> None:
    """Hooks are counted by module, so the ledger must be able to go by what any use of it was given."""
    twice = case(TWICE, grad="")
    uses = [call for call in twice.expected.trace.calls if call.path == "a"]
    assert [call_features(call)["inputs"] for call in uses] == [{"none"}, {"all"}]
    assert [twice.call_features(call)["inputs"] for call in uses] == [{"none", "all"}] * 2


@pytest.mark.parametrize(("op", "other", "ties"), [(Maximum(), X, "yes"), (Minimum(), X, "yes"), (Maximum(), V, "no")])
def test_a_network_that_compares_equal_numbers(op: Any, other: Any, ties: str) -> None:
    comparing = case(main=(CALLED, Apply("z", op, (X, other)), FROM_Y))
    assert comparing.network_features["ties"] == comparing.features["ties"] == {ties}


@pytest.mark.parametrize(("first", "word"), [("y", "yes"), ("leaked", "no")])
def test_a_pass_that_meets_the_inputs_alone_after_the_outputs_is_stale(first: str, word: str) -> None:
    """Up to 1.12 a full hook gets the gradients of the outputs once more then."""
    inner = Composite(
        (("a", Linear(2, 2)),),
        ("x",),
        (Call("h", "a", (X,)), Leak("h", Ref("h")), Apply("g", Add(), (Ref("h"), X))),
        Ref("g"),
    )
    ends = {"y": Ref("y"), "leaked": Ref("leaked", ("h",))}
    passes = tuple(Backward((ends[name],), (Ref("v"),), retain_graph=True) for name in (first, "leaked"))
    topology = Topology(inner, (Input("x", (2,), True), Input("v", (2,))), (Call("y", "", (X,)), *passes))
    assert network_features(Expected(topology, values(topology)))["stale"] == {word}
