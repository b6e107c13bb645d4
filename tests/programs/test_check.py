from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from hookcheck.oracle.tolerance import STATED
from hookcheck.programs.check import Check, text_of


def gap(check: Check) -> str | None:
    """How the last fact is not so."""
    finding = check.facts[-1].finding
    return finding and finding.gap


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (torch.tensor([1.0, 2.0]), [1, 2]),
        ((torch.tensor([[1.0]]), None), ([[1.0]], None)),
        ({"a": torch.tensor(0.1)}, {"a": 0.1}),
        (float("nan"), float("nan")),
        (float("-inf"), float("-inf")),
        (1.0 + STATED, 1.0),
        (STATED, 0.0),
        (1024 * (1.0 + STATED), 1024.0),
        ("text", "text"),
        (True, True),
    ],
)
def test_what_is_equal(observed: Any, expected: Any) -> None:
    check = Check()
    check.equal("fact", observed, expected)
    assert gap(check) is None


@pytest.mark.parametrize(
    ("observed", "expected", "expected_gap"),
    [
        (torch.tensor([1.0, 2.1]), [1, 2], "wrong values"),
        (torch.tensor([1.0]), [[1.0]], "wrong values"),
        ([1], (1,), "wrong values"),
        (1, True, "wrong values"),
        (1.001, 1.0, "wrong values"),
        (1.0 + 2 * STATED, 1.0, "wrong values"),
        (2 * STATED, 0.0, "wrong values"),
        (float("inf"), float("-inf"), "wrong values"),
        (float("inf"), 1.0, "wrong values"),
        (1.0, float("inf"), "wrong values"),
        (float("nan"), 1.0, "wrong values"),
        (None, [1.0], "None instead of a gradient"),
        (torch.zeros(1), None, "a gradient instead of None"),
        ({"a": 1}, {"b": 1}, "wrong values"),
        ((1, 2), (1,), "wrong values"),
    ],
)
def test_what_is_not_equal(observed: Any, expected: Any, expected_gap: str) -> None:
    check = Check()
    check.equal("fact", observed, expected)
    assert gap(check) == expected_gap


@pytest.mark.parametrize(("observed", "expected_gap"), [(2, None), (1, "not fired"), (3, "fired too often")])
def test_calls(observed: int, expected_gap: str | None) -> None:
    check = Check()
    check.calls("fact", observed, 2)
    assert gap(check) == expected_gap


@pytest.mark.parametrize(
    ("observed", "expected_gap"),
    [("ab", None), ("ba", "wrong order"), ("a", "not fired"), ("abb", "fired too often"), ("", "not fired")],
)
def test_order(observed: str, expected_gap: str | None) -> None:
    check = Check()
    check.order("fact", list(observed), ["a", "b"])
    assert gap(check) == expected_gap


def fails(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("act", "expected_gap"),
    [
        (lambda: fails(ValueError("too long")), None),
        (lambda: fails(ValueError("short")), "raised"),
        (lambda: fails(TypeError("too long")), "raised"),
        (lambda: None, "not raised"),
    ],
)
def test_raises(act: Any, expected_gap: str | None) -> None:
    check = Check()
    check.raises("fact", ValueError, act, says="long")
    assert gap(check) == expected_gap


def test_an_interrupt_is_nobodys_fact() -> None:
    with pytest.raises(KeyboardInterrupt):
        Check().raises("fact", ValueError, lambda: fails(KeyboardInterrupt()), "any")


def test_works() -> None:
    check = Check()
    assert check.works("one", lambda: 5) == 5
    assert gap(check) is None
    assert check.works("two", lambda: fails(ValueError("no"))) is None
    assert gap(check) == "raised"


def warn(text: str) -> int:
    warnings.warn(text, FutureWarning, stacklevel=1)
    return 7


def test_warnings() -> None:
    check = Check()
    assert check.warns("one", FutureWarning, lambda: warn("old hook"), says="hook") == 7
    assert gap(check) is None
    check.warns("two", UserWarning, lambda: warn("old hook"))
    assert gap(check) == "no warning"
    check.warns("three", FutureWarning, lambda: warn("old hook"), says="new")
    assert gap(check) == "no warning"
    check.silent("four", lambda: warn("old hook"), says="new")
    assert gap(check) is None
    check.silent("five", lambda: warn("old hook"))
    assert gap(check) == "new warning"


def test_a_program_goes_on_after_a_fact_that_is_wrong_and_names_each_once() -> None:
    check = Check()
    check.true("one", False)
    check.true("two", True)
    assert [bool(fact.finding) for fact in check.facts] == [True, False]
    with pytest.raises(ValueError, match="two facts have the name 'one'"):
        check.true("one", True)


def test_exceptions_name_files_without_their_folders() -> None:
    assert (
        text_of(ValueError("one function: /home/me/lib/tracing.py:40\nmore"))
        == "ValueError: one function: tracing.py:40"
    )
    assert text_of(ValueError("a/b is no file, nor is x/y")) == "ValueError: a/b is no file, nor is x/y"


def test_what_is_told_of_an_object_is_not_where_it_lay_in_memory() -> None:
    """Else two records of one torch would differ."""
    of = f"hook {test_works} on 0x2a"
    assert text_of(ValueError(of)) == "ValueError: hook <function test_works> on 0x2a"
    check = Check()
    check.silent("one", lambda: warn(of))
    check.warns("two", UserWarning, lambda: warn(of))
    for fact in check.facts:
        assert fact.finding is not None
        assert fact.finding.words()[1] == "FutureWarning: hook <function test_works> on 0x2a"


def test_an_exception_is_expected_with_a_text() -> None:
    with pytest.raises(ValueError, match="'fact' says of no text"):
        Check().raises("fact", ValueError, lambda: fails(ValueError("any")), "")
