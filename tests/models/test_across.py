"""Does it say what is otherwise for one's own model on another torch, silent first, and refuse what cannot be run?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hookcheck.errors import HookcheckError
from hookcheck.models import across as module
from hookcheck.models.across import across, differences
from hookcheck.releases import Release


def verdict(gap: str = "", **fields: Any) -> dict[str, Any]:
    word = "deviates: known" if gap else "conforms"
    base = {"what": "verdict", "module": "fc", "call": 0, "kind": "full_backward", "clause": "GO-01"}
    rest = {"expected": "", "observed": "", "why": "", "link": ""}
    return {**base, "verdict": word, "gap": gap, **rest, **fields}


def seen(times: int = 1, given: str = "(float32[2])", **fields: Any) -> dict[str, Any]:
    return {"what": "seen", "kind": "full_backward", "on": "fc", "times": times, "given": given, **fields}


def model(torch: str, **calls: int) -> dict[str, Any]:
    return {"what": "model", "model": "Net", "torch": torch, "device": "cpu", "kinds": [], "calls": calls, "raised": ""}


def said(before: Sequence[Any], after: Sequence[Any]) -> list[tuple[bool, str, tuple[str, ...], str, str]]:
    return [(d.worse, d.cost, d.modules, d.before, d.after) for d in differences(before, after)]


def test_what_is_the_same_is_not_told() -> None:
    rows = [verdict(), verdict("wrong values", clause="GI-01"), seen(), model("1", fc=1)]
    assert said(rows, [*rows[::-1]]) == []


def test_worse_comes_first_then_what_is_silent() -> None:
    ways = {"OB-05": "new warning", "BW-02": "not fired", "GI-01": "wrong values"}
    before = [*(verdict(clause=clause) for clause in ways), verdict("wrong order", clause="OR-01")]
    after = [*(verdict(gap, clause=clause) for clause, gap in ways.items()), verdict(clause="OR-01")]
    changes = differences(before, after)
    assert [(d.worse, d.clause) for d in changes] == [
        (True, "GI-01"),
        (True, "BW-02"),
        (True, "OB-05"),
        (False, "OR-01"),
    ]
    assert [d.cost for d in changes] == ["silent", "not called", "warning", "called otherwise"]
    assert next((d.worse, d.clause) for d in differences(after, before)) == (True, "OR-01")


def test_one_deviation_in_the_place_of_another_is_worse_if_it_costs_more() -> None:
    assert [d.worse for d in differences([verdict("raised")], [verdict("wrong values")])] == [True]
    assert [d.worse for d in differences([verdict("wrong values")], [verdict("raised")])] == [False]


def test_modules_with_the_same_difference_are_told_together() -> None:
    before = [verdict(module=name) for name in ("a", "b")]
    after = [verdict("not fired", module=name) for name in ("a", "b")]
    assert said(before, after) == [(True, "not called", ("a", "b"), "conforms", "not fired")]


def test_what_hooks_see_of_a_model_is_told_without_a_clause() -> None:
    before = [seen(), model("1", fc=1, norm=1)]
    after = [seen(0, ""), model("2", fc=1)]
    assert said(before, after) == [
        (False, "calls of modules", (), "2 calls of 2 modules", "1 calls of 1 modules"),
        (False, "what hooks see", ("fc",), "called 1 times with (float32[2])", "never called"),
    ]


def test_hooks_with_which_the_step_raises_are_worse() -> None:
    runs, fails = model("2.6.0", fc=1), {**model("2.15.0", fc=1), "raised": "ValueError: no"}
    (worse,), (mended,) = differences([runs], [fails]), differences([fails], [runs])
    assert (worse.worse, worse.cost, worse.before, worse.after, worse.why) == (
        *(True, "exception", "the step with your hooks runs", "raised", "ValueError: no"),
    )
    assert not mended.worse
    assert differences([fails], [fails]) == ()


def test_a_hook_kind_that_is_gone_is_worse_and_one_that_is_new_is_not() -> None:
    both, pre = seen(), seen(kind="full_backward_pre")
    new = verdict("not fired", kind="full_backward_pre")
    assert [(d.worse, d.kind, d.after) for d in differences([both], [both, pre, new])] == [
        (False, "full_backward_pre", "there")
    ]
    assert [(d.worse, d.after) for d in differences([both, pre], [both])] == [(True, "not there")]


def test_each_warning_is_compared_by_its_text() -> None:
    old, new = (verdict("new warning", clause="OB-05", observed=f"UserWarning: {text}. See there") for text in "ab")
    same = [seen()]
    changes = said([*same, old], [*same, old, new])
    assert changes == [(True, "warning", ("fc",), "no such warning", "new warning: UserWarning: b")]


def test_what_can_be_judged_on_one_torch_alone_is_told_if_it_deviates() -> None:
    changes = differences([seen()], [seen(), verdict("wrong values"), verdict(clause="BW-01")])
    assert [(d.worse, d.before, d.after) for d in changes] == [(True, "nothing to judge", "wrong values")]


SOURCE = """
import torch
from torch import nn

class Net(nn.Linear):
    def forward(self, x):
        return super().forward(x) * (2 if self._forward_hooks and {late} else 1)

def make():
    return Net(2, 2), torch.randn(2, 2)

def none():
    raise ValueError("no model here")
"""


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Two releases, both this very Python: on the later one the model doubles what it gives under a hook."""
    environments: list[Any] = []

    @contextmanager
    def environment(release: Release, packages: Sequence[str]) -> Iterator[Path]:
        environments.append((release.torch, packages))
        (tmp_path / "own_model.py").write_text(SOURCE.format(late=len(environments) > 1))
        yield Path(sys.executable)

    monkeypatch.setattr(module, "environment", environment)
    monkeypatch.setattr(module, "requirement", lambda: "hookcheck")
    monkeypatch.setattr(module, "_installed", lambda: "")
    monkeypatch.chdir(tmp_path)
    return environments


@pytest.mark.slow
def test_the_command_runs_on_both(two: list[Any]) -> None:
    messages: list[str] = []
    comparison = across("own_model:make", ["2.5.1", "2.6.0"], ["torchvision"], ["--kinds", "forward"], messages.append)
    assert two == [("2.5.1", ["hookcheck", "torchvision"]), ("2.6.0", ["hookcheck", "torchvision"])]
    assert comparison.worse
    worse = {d.clause: (d.cost, d.before, d.after) for d in comparison.differences if d.worse}
    assert worse["OB-02"] == ("silent", "conforms", "wrong values")
    assert worse.keys() == {"OB-02", "OB-03", "FN-04"}  # the output, the gradients, and what the hook is given of it
    assert "worse: silent\n  forward OB-02 on the model: conforms → wrong values" in str(comparison)
    assert messages[0] == "torch 2.5.1: making an environment"


def test_what_does_not_run_there_is_one_line(two: list[Any]) -> None:
    with pytest.raises(HookcheckError, match=r"^on torch 2\.5\.1: none\(\) raises ValueError: no model here$"):
        across("own_model:none", ["2.5.1", "2.6.0"])


@pytest.mark.parametrize("torches", [["2.6.0"], ["2.6.0", "2.6.0"], ["2.5.1", "2.6.0", "2.7.1"]])
def test_two_releases_must_be_named(torches: list[str]) -> None:
    with pytest.raises(HookcheckError, match="name the torch that you have and the one that you want"):
        across("a:b", torches)


def test_each_row_is_one_that_the_command_prints() -> None:
    import hookcheck.cli.check  # noqa: F401 -- fills the table
    from hookcheck.cli.output import SCHEMAS

    for row in (verdict(), seen(), model("2.6.0", fc=1)):
        json.dumps(row)
        assert any(set(schema["required"]) == set(row) for schema in SCHEMAS["check"])
