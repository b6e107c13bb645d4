from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from hookcheck.contract.verdict import Deviation
from hookcheck.record.model import Counterexample
from hookcheck.report.page import Page, page

from .samples import case, deviation, record, records


def symbols(drawn: Page) -> dict[tuple[str, str], list[str]]:
    (matrix,) = drawn.matrices
    return {
        (section.clause.id, family): ["".join(mark.symbol if mark else " " for mark in marks) for marks in row.marks]
        for section in matrix.sections
        for row in section.rows
        for family in row.families
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
    assert [section.clause.id for section in matrix.sections] == ["BW-01"]
    assert [(clause.id, families) for clause, families, _ in matrix.left_out] == [("BW-02", ("single-node",))]
    assert "no case of this family" in matrix.left_out[0][2]


def test_scopes_pair_legacy_and_full_and_leave_other_kinds_alone() -> None:
    kinds = ("some-chapter", "forward", "global_full_backward", "global_backward", "full_backward")
    drawn = page([record("2.0.1", [case("aaaa", kind) for kind in kinds])])
    assert [matrix.scope.kinds for matrix in drawn.matrices] == [
        (("full", "full_backward"),),
        (("legacy", "global_backward"), ("full", "global_full_backward")),
        (("module", "forward"),),
        (("some-chapter", "some-chapter"),),
    ]
    assert drawn.matrices[-1].scope.title == "Programs: some chapter"


def test_unspecified_clauses_are_shown_and_never_judged() -> None:
    drawn = page(records())
    assert [clause.id for clause in drawn.unspecified] == ["BW-03"]
    assert not any("BW-03" in key for column in drawn.columns for key in column.cells)


def test_unexplained_evidence_comes_first_and_the_costliest_gap_before_others() -> None:
    found = [(item.unexplained, item.gap, item.cause.clause, item.example.family) for item in page(records()).evidence]
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
    assert explained.cause.ledger == "linear-bias"


def test_evidence_that_differs_is_not_folded() -> None:
    changed = record("2.14.0", [case("aaaa", "backward", [deviation("wrong shape", "linear-bias")])])
    anchors = [item.anchor for item in page([*records(), changed]).evidence if "single-node" in item.families]
    assert len(anchors) == len(set(anchors)) == 4


def test_the_counts_of_each_version_are_kept() -> None:
    known, silent = deviation(ledger="linear-bias"), deviation("not fired", "linear-bias")
    more = [case("aaaa", "backward", [known]), case("cccc", "backward", [known, silent])]
    (item,) = page([record("1.8.1", more[:1]), record("1.9.1", more)]).evidence
    assert [(s.columns, s.judged, s.deviating, s.gaps) for s in item.sightings] == [
        (("1.8.1 cpu",), 2, 1, (("wrong values", 1),)),
        (("1.9.1 cpu",), 4, 3, (("wrong values", 2), ("not fired", 1))),
    ]


def test_the_smallest_counterexample_is_shown_but_an_unexplained_one_before_it() -> None:
    cases = [case(name, "backward", [deviation(ledger="known")]) for name in ("aaaa", "bbbb")]
    sized = (Counterexample("aaaa", {"layers": [1, 2]}, "big"), Counterexample("bbbb", {"layers": [1]}, "small"))
    both = replace(record("1.8.1", cases), counterexamples=sized)
    assert page([both]).evidence[0].example.source == "small"
    loud = replace(record("1.8.1", [case("aaaa", "backward", [deviation()]), cases[1]]), counterexamples=sized)
    assert page([loud]).evidence[0].example.source == "big"


def test_evidence_is_what_is_put_into_words_even_if_a_smaller_one_is_not() -> None:
    known = deviation(ledger="known")
    silent = replace(known, expected="", observed="")
    cases = [case("aaaa", "backward", [known]), case("bbbb", "backward", [silent])]
    sized = (Counterexample("aaaa", {"layers": [1, 2]}, "big"), Counterexample("bbbb", {"layers": [1]}, "small"))
    both = replace(record("1.8.1", cases), counterexamples=sized)
    assert page([both]).evidence[0].example.source == "big"


def test_runs_cut_short_and_cases_that_did_not_run_are_accounted_for() -> None:
    drawn = page(records())
    assert drawn.stopped == (("1.13.1 cpu", "interrupted by the user"),)
    told = [(account.outcome, account.kinds, account.cases, names) for account, names in drawn.accounts.items()]
    assert told == [
        ("crashed", ("backward",), 1, ("1.13.1 cpu",)),
        ("not run", ("full_backward",), 1, ("1.13.1 cpu",)),
        ("not offered", ("full_backward",), 2, ("1.7.1 cpu",)),
    ]


def test_families_on_which_all_is_alike_share_a_row() -> None:
    known = [case(name, "backward", [deviation(ledger="linear-bias")], family=name) for name in ("view", "nested")]
    other = case("x", "backward", [deviation(ledger="another")], family="residual")
    drawn = page([record("2.0.1", [*known, other, case("y", "backward"), case("z", "backward", family="inplace")])])
    section = drawn.matrices[0].sections[0]
    assert [row.families for row in section.rows] == [("view", "nested"), ("residual",), ("single-node", "inplace")]
    assert section.rows[0].boxes[0][0].note == "4 judged, 2 × wrong values"
    assert [[(mark.word, count) for mark, count in marks] for marks in section.overall[0]] == [
        [("known", 3), ("conforms", 2)]
    ]


def test_what_was_not_judged_is_shown_beside_what_was() -> None:
    counted = replace(case("aaaa", "backward"), unjudged={"BW-01": 3})
    section = page([record("2.0.1", [counted])]).matrices[0].sections[0]
    assert section.rows[0].boxes[0][0].note == "2 judged, 3 not judged"


def test_a_cause_has_one_counterexample_over_all_families_and_a_box_leads_to_it() -> None:
    cases = [
        case(name, kind, [deviation(ledger="linear-bias"), deviation(gap)], family=name)
        for name, gap in (("view", "not fired"), ("nested", "not fired"), ("residual", "wrong order"))
        for kind in ("backward", "full_backward")
    ]
    drawn = page([record("2.0.1", cases)])
    told = [(item.cause.kind, item.cause.ledger, item.gap, item.families) for item in drawn.evidence]
    assert sorted(told, key=str) == [
        (kind, *rest)
        for kind in ("backward", "full_backward")
        for rest in (
            ("linear-bias", "wrong values", ("view", "nested", "residual")),
            (None, "not fired", ("view", "nested")),
            (None, "wrong order", ("residual",)),
        )
    ]
    links = {
        (family, box.link)
        for row in drawn.matrices[0].sections[0].rows
        for family in row.families
        for boxes in row.boxes
        for box in boxes
    }
    unexplained = {(family, item.anchor) for item in drawn.unexplained for family in item.families}
    assert links == unexplained


def test_what_is_unexplained_or_differs_between_releases_is_notable() -> None:
    def notable(*deviations: Sequence[Deviation]) -> bool:
        made = [record(f"2.{n}.0", [case("aaaa", "backward", found)]) for n, found in enumerate(deviations)]
        return page(made).matrices[0].sections[0].notable

    known = deviation(ledger="linear-bias")
    assert not notable([], [])
    assert not notable([known], [known])
    assert notable([], [known])
    assert notable([deviation()], [deviation()])
    lacking = case("aaaa", "backward", outcome="not offered", reason="torch 1.7 lacks Mish")
    drawn = page([record("1.7.1", [lacking]), record("2.0.1", [case("aaaa", "backward", [known])])])
    assert not drawn.matrices[0].sections[0].notable
