"""Each clause: it conforms where its promise is kept, deviates where it is broken, and has no say elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hookcheck.contract.clause import CLAUSES, HookcheckError, Subject, clause_named, described
from hookcheck.contract.verdict import GAPS
from hookcheck.hooks.kinds import KINDS
from hookcheck.networks.case import Case
from hookcheck.probe.observation import Layout
from hookcheck.programs.program import chapters

from .cases import (
    CALLED,
    CHAIN,
    TIMES,
    TWICE,
    UNDER_NO_GRAD,
    WRITE,
    again,
    case,
    changed,
    deviations,
    gaps,
    judged,
    numbers,
    raising,
    with_events,
    with_gradients,
)
from .sound import (
    ACCUMULATED,
    ACTING,
    ASKING,
    AT_ONCE,
    BEFORE,
    BEFORE_NODES,
    BOTH,
    CALLING,
    EVALUATED,
    FROM_DATA,
    FROZEN,
    IN_PLACE,
    INSIDE,
    LEAVES,
    LEGACY,
    LITERALS,
    NODES,
    OF_TWO,
    OUTPUTS,
    PLAIN,
    RECORDED,
    REFUSED,
    REFUSED_LATER,
    RETAINING,
    SAVING,
    SOUND,
    TWO_PASSES,
    UNCERTAIN,
    UNHOOKED,
    UNUSED,
    WRITTEN,
    WRITTEN_LATER,
    chained,
    laid_out,
    standing,
)


@pytest.mark.parametrize("name", SOUND)
def test_what_keeps_every_promise_conforms(name: str) -> None:
    assert gaps(SOUND[name]) == []


def last(c: Case, **changes: Any) -> Case:
    return changed(c, len(c.observed.events) - 1, **changes)


def without_last(c: Case) -> Case:
    return with_events(c, *c.observed.events[:-1])


def reversed_events(c: Case) -> Case:
    return with_events(c, *c.observed.events[::-1])


def fired(c: Case) -> Case:
    return with_events(c, *case(kind=c.kind.name).observed.events)


@pytest.mark.parametrize(
    ("id", "broken", "gap"),
    [
        ("BW-01", changed(PLAIN, given=None), "wrong arguments"),
        ("BW-01", changed(case(CHAIN), given="a"), "wrong arguments"),
        ("BW-01", with_gradients(PLAIN, [*numbers(14)]), "wrong arguments"),
        ("BW-01", with_gradients(PLAIN, ..., np.array([7.0])), "wrong arguments"),
        ("BW-01", changed(PLAIN, arguments=(*numbers(14),)), "wrong arguments"),
        ("BW-02", without_last(PLAIN), "not fired"),
        ("BW-02", raising(PLAIN), "raised"),
        ("BW-02", without_last(TWO_PASSES), "not fired"),
        ("BW-03", without_last(FROM_DATA), "not fired"),
        ("BW-03", raising(FROM_DATA), "raised"),
        ("BW-04", fired(FROZEN), "fired too often"),
        ("BW-05", with_events(PLAIN, *PLAIN.observed.events * 2), "fired too often"),
        ("BW-05", without_last(TWO_PASSES), "not fired"),
        ("BW-05", with_events(UNUSED, *UNUSED.observed.events, UNCERTAIN), "fired too often"),
        ("BW-07", with_gradients(PLAIN, numbers(14, None)), "extra entries"),
        ("BW-07", with_gradients(PLAIN, ()), "missing entries"),
        ("BW-07", last(LITERALS, arguments=(numbers(14), numbers(7, None))), "missing entries"),
        ("BW-08", last(LITERALS, arguments=(numbers(14, None), numbers(7, None))), "a gradient instead of None"),
        ("BW-08", last(LITERALS, arguments=(numbers(None, 14), numbers(7, 0))), "a gradient instead of None"),
        ("BW-02", raising(REFUSED_LATER), "raised"),
        ("BW-12", WRITTEN, "not raised"),
        ("BW-12", WRITTEN_LATER, "not raised"),
        ("BW-12", raising(WRITTEN), "raised"),
        ("BW-12", raising(WRITTEN, "ValueError", text=IN_PLACE), "raised"),
        ("GI-01", with_gradients(PLAIN, numbers(14.001)), "wrong values"),
        ("GI-02", with_gradients(PLAIN, numbers(None)), "None instead of a gradient"),
        ("GI-02", with_gradients(FROM_DATA, numbers(0)), "a gradient instead of None"),
        ("GO-01", with_gradients(PLAIN, ..., numbers(8)), "wrong values"),
        ("GO-01", with_gradients(UNUSED, ..., numbers(7, 1), place=OF_TWO), "wrong values"),
        ("GO-02", with_gradients(UNUSED, ..., numbers(None, 0), place=OF_TWO), "None instead of a gradient"),
        ("GO-02", with_gradients(PLAIN, ..., numbers(None)), "None instead of a gradient"),
        ("GO-02", last(INSIDE, arguments=(numbers(14), numbers(0))), "a gradient instead of None"),
        ("GO-03", with_gradients(PLAIN, ..., numbers(7, 7)), "extra entries"),
        ("GO-03", with_gradients(PLAIN, ..., ()), "missing entries"),
        ("NG-01", fired(EVALUATED), "fired too often"),
        ("NG-01", raising(EVALUATED), "raised"),
        ("OB-01", raising(PLAIN), "raised"),
        ("OB-02", again(PLAIN, values={"y": np.array([10 + 1e-14])}), "other rounding"),
        ("OB-02", again(PLAIN, values={"y": np.array([10.01])}), "wrong values"),
        ("OB-02", again(PLAIN, values={"y": np.array([10.0], np.float32)}), "wrong values"),
        ("OB-02", again(PLAIN, values={"y": np.array([[10.0]])}), "wrong values"),
        ("OB-02", again(PLAIN, values={"y": (np.array([10.0]),)}), "wrong values"),
        ("OB-02", again(PLAIN, values={}), "wrong values"),
        ("OB-02", again(PLAIN, requires_grad={"y": False}), "wrong arguments"),
        ("OB-03", again(PLAIN, gradients={**PLAIN.plain.gradients, "x": np.array([14 + 1e-14])}), "other rounding"),
        ("OB-03", again(PLAIN, gradients={**PLAIN.plain.gradients, "x": np.array([14.014])}), "wrong values"),
        ("OB-04", again(PLAIN, gradients={**PLAIN.plain.gradients, "x": None}), "None instead of a gradient"),
        ("OB-04", again(PLAIN, gradients={**PLAIN.plain.gradients, "v": np.zeros(1)}), "a gradient instead of None"),
        ("OB-05", again(PLAIN, warnings=(("UserWarning", "mind the hook"),)), "new warning"),
        ("OB-06", again(PLAIN, random=PLAIN.plain.random + b"1"), "wrong values"),
        ("OB-07", standing(PLAIN, UNHOOKED._replace(leaf=True)), "wrong arguments"),
        ("OB-07", standing(PLAIN, UNHOOKED._replace(view=True, version=1)), "wrong arguments"),
        ("OB-07", standing(PLAIN, UNHOOKED._replace(strides=(2,)), name="x"), "wrong arguments"),
        ("OB-07", standing(PLAIN, UNHOOKED._replace(object="x", view=True), name="x"), "wrong arguments"),
        ("OB-07", standing(LEGACY, UNHOOKED._replace(view=True)), "wrong arguments"),
        ("OB-07", standing(LEGACY, UNHOOKED._replace(object="x")), "wrong arguments"),
        ("OB-07", standing(LEGACY, UNHOOKED._replace(version=None)), "wrong arguments"),
        ("OB-07", laid_out(2, Layout((2,), False)), "wrong arguments"),
        ("OB-07", laid_out(1, Layout((1,), True)), "wrong arguments"),
        ("OB-08", again(PLAIN, alive=("net", "x")), "kept alive"),
        ("PL-01", last(PLAIN, devices=("cuda",)), "wrong arguments"),
        ("PL-01", last(PLAIN, devices=("cpu", "meta")), "wrong arguments"),
        ("PL-01", last(PLAIN, thread=1), "wrong arguments"),
        ("PL-01", last(LEAVES, stream=1), "wrong arguments"),
        ("PL-02", replace(without_last(PLAIN), elsewhere=PLAIN.observed), "not fired"),
        ("PL-02", replace(PLAIN, elsewhere=without_last(PLAIN).observed), "fired too often"),
        ("PL-02", replace(reversed_events(case(CHAIN)), elsewhere=case(CHAIN).observed), "wrong order"),
        ("PL-02", replace(with_gradients(PLAIN, numbers(14.001)), elsewhere=PLAIN.observed), "wrong values"),
        ("PL-02", replace(with_gradients(PLAIN, numbers(None)), elsewhere=PLAIN.observed), "wrong values"),
        ("PL-02", replace(raising(PLAIN), elsewhere=PLAIN.observed), "raised"),
        ("PL-02", replace(PLAIN, elsewhere=raising(PLAIN).observed), "not raised"),
        (
            "PL-02",
            replace(again(PLAIN, gradients={**PLAIN.plain.gradients, "x": None}), elsewhere=PLAIN.observed),
            "None instead of a gradient",
        ),
        ("GR-01", changed(PLAIN, requires_grad=True), "wrong arguments"),
        ("GR-01", changed(BEFORE, requires_grad=True), "wrong arguments"),
        ("GR-01", changed(OUTPUTS, requires_grad=True), "wrong arguments"),
        ("OR-01", reversed_events(case(CHAIN)), "wrong order"),
        ("OR-01", reversed_events(case(CHAIN, grad="")), "wrong order"),
        ("AG-01", again(PLAIN, gradients={**PLAIN.plain.gradients, "x": np.array([15.0])}), "wrong values"),
        ("AG-01", again(PLAIN, gradients={**PLAIN.plain.gradients, "x": None}), "wrong values"),
        ("AG-01", again(PLAIN, gradients={**PLAIN.plain.gradients, "v": np.ones(1)}), "wrong values"),
        ("AG-01", again(PLAIN, {"raised": raising(PLAIN).observed.raised}), "raised"),
        ("AG-01", again(ACTING, gradients=PLAIN.plain.gradients), "wrong values"),
        ("AG-02", again(PLAIN, values={"y": np.array([11.0])}), "wrong values"),
        ("AG-02", again(case(kind="acting_forward"), values=PLAIN.plain.values), "wrong values"),
        ("BN-01", without_last(BEFORE), "not fired"),
        ("BN-01", raising(BEFORE), "raised"),
        ("BN-02", changed(BEFORE, given=None), "wrong arguments"),
        ("BN-02", changed(BEFORE, arguments=(numbers(7), numbers(7))), "wrong arguments"),
        ("BN-02", changed(BEFORE, arguments=(np.array([7.0]),)), "wrong arguments"),
        ("GO-01", changed(BEFORE, arguments=(numbers(8),)), "wrong values"),
        ("FN-01", without_last(CALLING), "not fired"),
        ("FN-01", with_events(CALLING, *CALLING.observed.events, CALLING.observed.events[0]), "fired too often"),
        ("FN-01", reversed_events(CALLING), "wrong order"),
        ("FN-02", changed(CALLING, given="b"), "wrong arguments"),
        ("FN-02", changed(CALLING, arguments=(numbers(6), {}, np.array([10.0]))), "wrong arguments"),
        ("FN-02", changed(CALLING, arguments=([*numbers(5)], {}, np.array([10.0]))), "wrong arguments"),
        ("FN-02", changed(CALLING, arguments=(numbers(5), np.array([10.0]))), "wrong arguments"),
        ("FN-03", changed(CALLING, arguments=(numbers(5), {"x": None}, np.array([10.0]))), "wrong arguments"),
        ("FN-04", changed(CALLING, arguments=(numbers(5), {}, np.array([11.0]))), "wrong arguments"),
        ("FN-04", changed(CALLING, arguments=(numbers(5), {}, numbers(10))), "wrong arguments"),
        ("TN-01", without_last(LEAVES), "not fired"),
        ("TN-01", with_events(LEAVES, *LEAVES.observed.events * 2), "fired too often"),
        ("TN-01", changed(LEAVES, arguments=numbers(1)), "wrong values"),
        ("TN-02", without_last(ACCUMULATED), "not fired"),
        ("TN-02", changed(ACCUMULATED, 2, arguments=ACCUMULATED.observed.events[0].arguments), "wrong values"),
        ("TN-03", without_last(OUTPUTS), "not fired"),
        ("TN-03", with_events(OUTPUTS, *OUTPUTS.observed.events * 2), "fired too often"),
        ("TN-03", changed(OUTPUTS, arguments=numbers(1)), "wrong values"),
        ("TN-04", without_last(NODES), "not fired"),
        ("TN-04", changed(NODES, arguments=numbers(1)), "wrong values"),
        ("TN-05", with_events(BEFORE_NODES, *BEFORE_NODES.observed.events * 2), "fired too often"),
        ("TN-05", changed(BEFORE_NODES, arguments=(None,)), "wrong values"),
        ("TN-06", without_last(AT_ONCE), "not fired"),
        ("TN-06", changed(AT_ONCE, arguments=({"x": np.array([8.0])},)), "wrong values"),
        ("TN-06", changed(AT_ONCE, arguments=({"v": np.array([0.0])},)), "wrong values"),
        ("TN-07", changed(RETAINING, arguments=(None,)), "wrong values"),
        ("TN-07", changed(RETAINING, arguments=numbers(1)), "wrong values"),
        ("TN-08", last(SAVING, arguments=("2",)), "wrong arguments"),
        (
            "TN-08",
            with_events(case(kind="saved_tensors", main=UNDER_NO_GRAD), SAVING.observed.events[0]),
            "fired too often",
        ),
        ("CH-01", chained(ACTING, *ACTING.observed.chained[:2]), "not fired"),
        ("CH-01", chained(ACTING, *ACTING.observed.chained[::-1]), "wrong order"),
        ("CH-01", chained(ACTING, *((link, ACTING.observed.events[0]) for link in range(3))), "wrong values"),
        ("P2-11", without_last(case(kind="backward", main=(CALLED, *WRITE))), "not fired"),
        ("P2-11", without_last(LEGACY), "not fired"),
        ("P2-11", with_events(LEGACY, *LEGACY.observed.events * 2), "fired too often"),
        ("P2-11", with_gradients(LEGACY, ..., numbers(8)), "wrong values"),
        ("P2-11", with_gradients(LEGACY, ..., ()), "wrong values"),
        ("P2-12", without_last(LEGACY), "not fired"),
        ("P2-12", with_events(LEGACY, *LEGACY.observed.events * 2), "fired too often"),
        ("P2-12", with_gradients(LEGACY, ..., numbers(8)), "wrong values"),
    ],
)
def test_what_breaks_a_promise_deviates(id: str, broken: Case, gap: str) -> None:
    assert (id, gap) in gaps(broken, id)
    assert gap in GAPS


def test_every_clause_is_broken_here() -> None:
    (mark,) = [m for m in test_what_breaks_a_promise_deviates.pytestmark if m.name == "parametrize"]
    assert {row[0] for row in mark.args[1]} == {c.id for c in CLAUSES.values() if c.subject is not Subject.PROGRAM}


@pytest.mark.parametrize(
    ("id", "silent"),
    [
        ("BW-02", FROM_DATA),
        ("BW-03", PLAIN),
        ("BW-04", PLAIN),
        ("BW-05", without_last(PLAIN)),
        ("BW-08", PLAIN),
        ("BW-12", PLAIN),
        ("BW-12", case(main=(CALLED, *WRITE), kind="backward")),
        ("BW-02", REFUSED),
        ("OB-01", REFUSED),
        ("GI-01", with_gradients(PLAIN, numbers(None))),
        ("GI-01", FROM_DATA),
        ("GO-01", with_gradients(PLAIN, ..., numbers(None))),
        ("NG-01", PLAIN),
        ("OR-01", PLAIN),
        ("OB-02", raising(PLAIN)),
        ("OB-03", raising(PLAIN)),
        ("OB-07", raising(PLAIN)),
        ("OB-08", raising(PLAIN)),
        ("GR-01", changed(RECORDED, requires_grad=True)),
        ("GR-01", with_events(PLAIN)),
        ("AG-01", raising(PLAIN)),
        ("TN-07", case(kind="output_retain_grad", main=ASKING)),
        ("CH-01", raising(ACTING)),
        ("P2-11", PLAIN),
        ("P2-11", case(kind="backward", main=UNDER_NO_GRAD)),
        ("P2-12", case(kind="backward", main=UNDER_NO_GRAD)),
        ("P2-12", raising(LEGACY)),
    ],
)
def test_a_clause_has_no_say_on_what_it_does_not_speak_of(id: str, silent: Case) -> None:
    assert judged(silent, id) == 0
    assert gaps(silent, id) == []


def test_a_negative_zero_is_not_the_same_bit_by_bit() -> None:
    zero = again(PLAIN, {"values": {"y": np.array([0.0])}}, values={"y": np.array([-0.0])})
    assert gaps(zero, "OB-02") == [("OB-02", "other rounding")]


def test_nan_is_the_same_as_itself_bit_by_bit() -> None:
    nan = {"y": np.array([float("nan")])}
    assert gaps(again(PLAIN, {"values": nan}, values=nan), "OB-02") == []


def test_a_warning_that_is_there_without_hooks_is_none_of_the_hooks() -> None:
    old = (("UserWarning", "an old friend"),)
    assert gaps(again(PLAIN, {"warnings": old}, warnings=old), "OB-05") == []


@pytest.mark.parametrize(
    ("id", "hooked"),
    [("OB-01", PLAIN), ("BW-02", PLAIN), ("BW-03", FROM_DATA), ("BN-01", BEFORE), ("NG-01", EVALUATED)],
)
def test_a_run_that_raises_without_hooks_too_is_none_of_the_hooks(id: str, hooked: Case) -> None:
    with_hooks = raising(hooked)
    assert gaps(with_hooks, id) == [(id, "raised")]
    assert gaps(again(with_hooks, {"raised": with_hooks.observed.raised}), id) == []


def test_the_legacy_pin_counts_what_bypasses_the_output() -> None:
    """``g`` feeds ``b`` and leaks: the Node that made it sees 3 · 7 + 7, the module's output sees it too."""
    (gradient,) = BOTH.of_first_output["a"]
    assert gradient.item() == 28
    assert gaps(BOTH, "P2-11") == []


def test_the_legacy_pin_does_not_mind_the_order_of_calls() -> None:
    twice = case(TWICE, kind="backward")
    assert gaps(reversed_events(twice), "P2-11") == []


def test_a_deviation_names_subject_expectation_and_observation() -> None:
    (d,) = deviations(with_gradients(case(CHAIN), numbers(20), place=0), "GI-01")
    assert (d.subject, d.expected, d.observed) == ("net.b#0", "grad_input: ([21.0],)", "([20.0],)")


def test_a_clause_says_what_it_promises() -> None:
    for id, clause in CLAUSES.items():
        assert clause.id == id
        assert clause.statement.endswith(".")
        assert "\n" not in clause.statement
        assert clause.source
        assert set(clause.kinds) <= {*KINDS, *chapters()}
        assert described(clause)["class"] == clause.rank
    assert CLAUSES["P2-11"].kinds == ("backward", "global_backward")


def test_an_unknown_clause_is_told_where_they_are_listed() -> None:
    with pytest.raises(HookcheckError, match=r"unknown clause 'XX-1'; `hookcheck list` shows them all"):
        clause_named("XX-1")


def test_a_module_that_is_never_differentiated_is_not_judged_by_firings() -> None:
    assert [judged(case(TIMES, (CALLED,)), id) for id in ("BW-02", "BW-03", "GI-01", "OR-01")] == [0, 0, 0, 0]
