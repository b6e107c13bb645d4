"""Is all that any case of a family shows, shown by those that are run?"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from hookcheck.hooks.kinds import KINDS
from hookcheck.topology.corpus import read, shares
from hookcheck.topology.families import FAMILIES


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "conformance"))
    return importlib.import_module("draw_beside")


def test_few_more_cases_show_all_the_rest(script: Any) -> None:
    shown = {("a", "forward"): {1, 2}, ("b", "forward"): {3}, ("b", "tensor"): {3, 4}, ("c", "tensor"): {5}}
    assert script.adding(shown, []) == [("b", "tensor"), ("a", "forward"), ("c", "tensor")]
    assert script.adding(shown, [("b", "forward"), ("c", "tensor")]) == [("a", "forward"), ("b", "tensor")]
    assert script.adding(shown, shown) == []


@pytest.mark.parametrize(
    "family", [pytest.param(name, marks=() if name == "residual" else pytest.mark.slow) for name in FAMILIES]
)
def test_each_feature_of_a_family_meets_each_hook_kind(script: Any, family: str) -> None:
    shown = script.features(family, read(script.FOLDER, family))
    run = [(id, kind) for id, kinds in shares(script.FOLDER, family).items() for kind in kinds]
    assert script.adding(shown, run) == []
    assert len(run) < len(shown) * 0.8
    without = [case for case in run if case[1] != "forward"]
    assert {kind for _, kind in script.adding(shown, without)} == {"forward"}


def test_records_tell_what_each_case_shows(script: Any) -> None:
    (newest,) = [path for path in script.record_files(script.RECORDS) if "2.13.0" in path.name]
    shown = script.recorded([newest])["residual"]
    assert {kind for _, kind in shown} == {*KINDS}
    assert any(("legacy-order" in str(each)) for those in shown.values() for each in those)
