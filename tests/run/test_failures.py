"""Are failures told once a cause, the smallest network of each, and all others counted?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hookcheck.run.failures import FEW, PLACES, fold


def report(clause: str, gap: str, family: str, kind: str = "full_backward", more: str = "") -> Any:
    return SimpleNamespace(longrepr=f"{clause} ({family}, {kind}): {gap} at net.fc#1\npromise: so\n{more}")


def shown(reports: list[Any]) -> list[str]:
    return [each.longrepr for each in reports if not hasattr(each, "_pdbshown")]


def test_a_cause_is_told_once_by_its_shortest_text() -> None:
    reports = [
        report("GI-01", "wrong values", "nested", more="a long network\n" * 9),
        report("GI-01", "wrong values", "residual"),
        report("GI-01", "wrong shape", "nested"),
        report("GO-01", "wrong values", "nested", "backward"),
    ]
    assert fold(reports) == 4
    first, second, third = shown(reports)
    assert first.startswith("GI-01 (residual, full_backward)")
    assert first.endswith("\nthe same in 1 more cell: nested with full_backward")
    assert "the same in" not in second + third


def test_a_lost_case_is_told_once_for_all_clauses_that_lack_it() -> None:
    reports = [
        SimpleNamespace(longrepr=f"crashed (nested, {kind}): signal 11\ntopology {id}:\n\nimport torch")
        for kind, id in [("backward", "aaaa"), ("backward", "aaaa"), ("full_backward", "aaaa"), ("backward", "bbbb")]
    ]
    assert fold(reports) == 4
    first, second = shown(reports)
    assert first.endswith("\nthe same in 2 more cells: nested with backward, nested with full_backward")
    assert second.startswith("crashed (nested, backward): signal 11\ntopology bbbb")


def test_many_places_are_counted() -> None:
    reports = [report("GI-01", "wrong values", f"family-{number:02}") for number in range(20)]
    assert fold(reports) == 20
    (only,) = shown(reports)
    assert only.endswith(f" and {19 - PLACES} more")


def test_of_many_causes_the_smallest_network_of_that_of_most_cells_is_told() -> None:
    program = "FW-14 (forward-hooks): It runs (at once).\nsource:   docs\ntwo hooks: wrong order\n  expected: a, b\n"
    reports = [
        *(report(f"GI-{number:02}", "wrong values", "nested") for number in range(1, FEW)),
        report("OB-01", "raised", "view", more="its larger network"),
        report("OB-01", "raised", "nested", more="its network"),
        SimpleNamespace(longrepr=f"{program}  observed: b, a\n\ndef program(check): ...\n"),
    ]
    assert fold(reports) == len(reports)
    (only,) = shown(reports)
    assert only.startswith("OB-01 (nested, full_backward): raised at net.fc#1")
    assert only.endswith(
        f"\nthe same in 1 more cell: view with full_backward\n\n{FEW} more causes, which -v tells in full\n"
    )


def test_which_worker_it_was_is_not_told() -> None:
    one = report("GI-01", "wrong values", "nested")
    one.node = "gw0"
    fold([one])
    assert not hasattr(one, "node")


def test_other_failures_are_left_alone() -> None:
    reports = [SimpleNamespace(longrepr=text) for text in ("AssertionError", "FW-01 (forward-hooks): It holds.", None)]
    assert fold(reports) == 0
    assert len(shown(reports)) == 3
