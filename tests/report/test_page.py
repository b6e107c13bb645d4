from __future__ import annotations

import random
from dataclasses import replace

from hookcheck.record.model import Counterexample
from hookcheck.report.page import Page, page

from .samples import case, deviation, record, records


def symbols(drawn: Page) -> dict[tuple[str, str], list[str]]:
    (matrix,) = drawn.matrices
    return {
        (clause.id, row.family): ["".join(box.mark.symbol if box.mark else " " for box in boxes) for boxes in row.boxes]
        for clause, rows in matrix.rows
        for row in rows
    }


def test_versions_go_across_from_old_to_new_then_by_device() -> None:
    shuffled = [*records(), record("1.13.1", [case("aaaa", "backward")], device="cuda")]
    random.Random(0).shuffle(shuffled)
    assert [column.name for column in page(shuffled).columns] == [
        "1.7.1 cpu",
        "1.13.1 cpu",
        "1.13.1 cuda",
        "2.13.0 cpu",
    ]


def test_every_box_shows_legacy_beside_full() -> None:
    assert symbols(page(records())) == {
        ("BW-01", "single-node"): ["~·", "~✗", "~✓"],
        ("BW-01", "residual"): ["✗·", "!–", "✓✓"],
        ("BW-02", "single-node"): ["✓·", "✓≠", "✓✓"],
        ("BW-02", "residual"): ["✓·", "!–", "✓✓"],
    }


def test_a_record_that_does_not_plan_a_family_has_an_empty_box() -> None:
    drawn = page([record("1.8.1", [case("aaaa", "backward")]), record("1.9.1", [case("b", "backward", family="f")])])
    assert symbols(drawn)["BW-01", "f"] == [" ", "✓"]


def test_rows_that_no_record_judged_are_left_out_with_the_reason() -> None:
    unjudged = replace(case("aaaa", "backward"), judged={"BW-01": 1})
    (matrix,) = page([record("1.8.1", [unjudged])]).matrices
    assert [clause.id for clause, _ in matrix.rows] == ["BW-01"]
    assert [(clause.id, families) for clause, families, _ in matrix.left_out] == [("BW-02", ("single-node",))]
    assert "no case of this family" in matrix.left_out[0][2]


def test_scopes_pair_legacy_and_full_and_leave_other_kinds_alone() -> None:
    kinds = ("forward", "global_full_backward", "global_backward", "full_backward")
    drawn = page([record("2.0.1", [case("aaaa", kind) for kind in kinds])])
    assert [matrix.scope.kinds for matrix in drawn.matrices] == [
        (("full", "full_backward"),),
        (("legacy", "global_backward"), ("full", "global_full_backward")),
        (("forward", "forward"),),
    ]


def test_unspecified_clauses_are_shown_and_never_judged() -> None:
    drawn = page(records())
    assert [clause.id for clause in drawn.unspecified] == ["BW-03"]
    assert not any("BW-03" in key for column in drawn.columns for key in column.cells)


def test_unexplained_evidence_comes_first_and_the_costliest_gap_before_others() -> None:
    found = [(item.unexplained, item.gap, item.clause, item.family) for item in page(records()).evidence]
    assert found == [
        (True, "wrong values", "BW-01", "residual"),
        (True, "not fired", "BW-01", "single-node"),
        (True, "wrong order", "BW-02", "single-node"),
        (False, "wrong values", "BW-01", "single-node"),
    ]


def test_identical_evidence_is_folded_over_versions() -> None:
    explained = page(records()).evidence[-1]
    assert explained.columns == ("1.7.1 cpu", "1.13.1 cpu", "2.13.0 cpu")
    assert len(explained.sightings) == 1
    assert explained.ledger == ("linear-bias",)


def test_evidence_that_differs_is_not_folded() -> None:
    changed = record("2.14.0", [case("aaaa", "backward", [deviation("wrong shape", "linear-bias")])])
    anchors = [item.anchor for item in page([*records(), changed]).evidence if item.family == "single-node"]
    assert len(anchors) == len(set(anchors)) == 4


def test_the_counts_of_each_version_are_kept() -> None:
    more = [case("aaaa", "backward", [deviation()]), case("cccc", "backward", [deviation(), deviation("not fired")])]
    (item,) = page([record("1.8.1", more[:1]), record("1.9.1", more)]).evidence
    assert [(s.columns, s.judged, s.deviating, s.gaps) for s in item.sightings] == [
        (("1.8.1 cpu",), 2, 1, (("wrong values", 1),)),
        (("1.9.1 cpu",), 4, 3, (("wrong values", 2), ("not fired", 1))),
    ]


def test_the_smallest_counterexample_is_shown_but_an_unexplained_one_before_it() -> None:
    cases = [case(name, "backward", [deviation(ledger="known")]) for name in ("aaaa", "bbbb")]
    sized = (Counterexample("aaaa", {"layers": [1, 2]}, "big"), Counterexample("bbbb", {"layers": [1]}, "small"))
    both = replace(record("1.8.1", cases), counterexamples=sized)
    assert page([both]).evidence[0].source == "small"
    loud = replace(record("1.8.1", [case("aaaa", "backward", [deviation()]), cases[1]]), counterexamples=sized)
    assert page([loud]).evidence[0].source == "big"


def test_evidence_is_what_is_put_into_words_even_if_a_smaller_one_is_not() -> None:
    known = deviation(ledger="known")
    silent = replace(known, expected="", observed="")
    cases = [case("aaaa", "backward", [known]), case("bbbb", "backward", [silent])]
    sized = (Counterexample("aaaa", {"layers": [1, 2]}, "big"), Counterexample("bbbb", {"layers": [1]}, "small"))
    both = replace(record("1.8.1", cases), counterexamples=sized)
    assert page([both]).evidence[0].source == "big"


def test_runs_cut_short_and_cases_that_did_not_run_are_accounted_for() -> None:
    drawn = page(records())
    assert drawn.stopped == (("1.13.1 cpu", "interrupted by the user"),)
    told = [(account.outcome, account.kind, account.cases, names) for account, names in drawn.accounts.items()]
    assert told == [
        ("crashed", "backward", 1, ("1.13.1 cpu",)),
        ("not run", "full_backward", 1, ("1.13.1 cpu",)),
        ("not offered", "full_backward", 2, ("1.7.1 cpu",)),
    ]
