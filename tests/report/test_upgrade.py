"""Does the answer about an upgrade follow from the comparison, and never call safe what was not looked at?"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest

from hookcheck.contract.verdict import CaseResult, Deviation
from hookcheck.record.compare import compare
from hookcheck.record.model import Record
from hookcheck.report.support import support
from hookcheck.report.upgrade import (
    CANNOT_TELL,
    NOT_SAFE,
    NOTES,
    SAFE,
    Known,
    OwnChange,
    Upgrade,
    upgrade,
    warning_filter,
)
from hookcheck.report.upgrade_page import page

from .samples import case, deviation, record

LEDGER = {"linear-bias": {"link": "https://example.org/1"}}


def answer(before: Record, after: Record, kinds: tuple[str, ...] = ()) -> Upgrade:
    content = support([before, after])
    rows: list[dict[str, Any]] = [
        {"clause": id, "kind": each["kind"], **statement}
        for id, clause in content["clauses"].items()
        for each in clause["support"]
        for statement in each["statements"]
    ]
    return upgrade(before, after, compare(before, after, kinds), kinds, Known(rows, LEDGER, {"prog": ("backward",)}))


def one(version: str, *deviations: Deviation) -> Record:
    return record(version, [case("aaaa", "backward", deviations)])


@pytest.mark.parametrize(
    ("now", "verdict", "do"),
    [
        ([], SAFE, None),
        ([deviation(ledger="linear-bias")], NOT_SAFE, "adapt"),
        ([deviation()], NOT_SAFE, "report"),
        ([deviation("not fired", "linear-bias")], NOT_SAFE, "adapt"),
        ([deviation("raised", "linear-bias")], NOT_SAFE, "adapt"),
        ([deviation("other rounding", "linear-bias")], NOTES, "decide"),
        ([deviation("kept alive", "linear-bias")], NOTES, "decide"),
        ([deviation(clause="BW-02", ledger="linear-bias")], NOTES, "decide"),  # a pin
        ([replace(deviation("new warning", "linear-bias"), observed="UserWarning: so. More")], NOTES, "filter"),
        ([deviation(clause="BW-03")], SAFE, None),  # of which nothing is promised
    ],
)
def test_the_verdict(now: list[Deviation], verdict: str, do: str | None) -> None:
    advice = answer(one("2.6.0"), one("2.13.0", *now))
    assert advice.verdict == verdict
    assert [change.do for change in advice.changes if change.group.cause.worse] == ([do] if do else [])
    assert answer(one("2.6.0", *now), one("2.13.0", *now)).verdict == SAFE  # what was so before


@pytest.mark.parametrize(
    ("model_changes", "verdict", "shown"),
    [
        ((), SAFE, "Nothing: hooks on it see the same on both."),
        ((OwnChange(True, "silent", "full_backward BW-01 on fc: conforms → wrong values"),), NOT_SAFE, "BW-01 on fc"),
        ((OwnChange(True, "warning", "a warning"),), NOTES, "**worse**, warning: a warning"),
        ((OwnChange(False, "what hooks see", "called once"),), SAFE, "**otherwise**, what hooks see: called once"),
        (None, SAFE, "Your own model was not run either"),
    ],
)
def test_ones_own_model_has_its_say(model_changes: tuple[OwnChange, ...] | None, verdict: str, shown: str) -> None:
    before, after = one("2.6.0"), one("2.13.0")
    advice = upgrade(before, after, compare(before, after), (), Known([], LEDGER, {}), model_changes)
    assert advice.verdict == verdict
    text = page(advice, None)
    assert shown in text
    assert ("on your own model?" in text) == (model_changes is not None)


def test_what_was_not_looked_at_is_never_safe() -> None:
    before = record("2.6.0", [case("aaaa", "backward"), case("bbbb", "full_backward")])
    after = record("2.13.0", [case("aaaa", "backward")])
    assert answer(before, after).verdict == CANNOT_TELL
    assert answer(before, after, ("backward",)).verdict == SAFE
    crashed = record("2.13.0", [case("aaaa", "backward", outcome="crashed", reason="signal 11")])
    assert answer(one("2.6.0"), crashed).verdict == NOT_SAFE


def test_a_program_that_deviated_for_the_same_reason_is_no_news() -> None:
    def program(version: str, fact: str, gap: str) -> Record:
        known = replace(deviation(gap, "linear-bias"), subject=fact)
        ran = CaseResult("program", "BW-01", "backward", "corpus", "ran", "", {"BW-01": 2}, (known,))
        return record(version, [ran])

    advice = answer(program("2.6.0", "calls", "not fired"), program("2.13.0", "values", "wrong values"))
    (change,) = [change for change in advice.changes if change.group.cause.worse]
    assert (change.again, change.do, advice.verdict) == (True, "decide", NOTES)


def test_since_which_release() -> None:
    (change,) = answer(one("2.6.0"), one("2.13.0", deviation())).changes
    assert change.since == "since 2.13.0, not yet in 2.6.0"


@pytest.mark.parametrize(
    "observed",
    [
        "UserWarning: Using a non-full backward hook (a+b) [x]. And more",
        'FutureWarning: it\'s "so" \\ here\nmore',
        "SomeOther: text of a class that Python lacks",
        "DeprecationWarning: " + "word " * 60,
    ],
)
def test_the_filter_hides_the_warning_that_was_seen(observed: str) -> None:
    category, _, text = observed.partition(": ")
    builtin = {"UserWarning": UserWarning, "FutureWarning": FutureWarning, "DeprecationWarning": DeprecationWarning}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        exec(warning_filter(observed if category in builtin else text), {"warnings": warnings, **builtin})
        warnings.warn(text, builtin.get(category, UserWarning), stacklevel=1)
        warnings.warn("another one", builtin.get(category, UserWarning), stacklevel=1)
    assert [str(each.message) for each in seen] == ["another one"]


def test_the_page() -> None:
    now = [deviation(ledger="linear-bias"), replace(deviation("new warning"), observed="UserWarning: <b> so. More")]
    advice = answer(one("2.6.0"), one("2.13.0", *now), ("backward",))
    text = page(advice, [{"path": "a.py", "line": 3, "kind": "backward", "text": "change 1"}])
    assert text.startswith("# torch 2.6.0 → 2.13.0: do not upgrade\n")
    assert "1. **silent**, a documented promise broken, since 2.13.0, not yet in 2.6.0." in text
    assert "[Why](https://example.org/1)" in text
    assert '  warnings.filterwarnings(\n      "ignore",\n      message="<b> so",\n' in text
    assert "- `a.py:3` backward: change 1" in text
    assert "- **backward**: eager 1 ran, 2 changes for the worse; inside another context not run;" in text
    assert "hookcheck repro aaaa --clause BW-01 --kind backward" in text
    assert "Not looked at: give your source code" in page(advice, None)
    safe = page(answer(one("2.6.0"), one("2.13.0")), [])
    assert "Nothing of what ran in both." in safe
    assert "There is none to see." in safe
    questions = [line for line in text.splitlines() if line.startswith("## ")]
    assert questions.index("## What changed?") < questions.index("## What was not run, and why?")
