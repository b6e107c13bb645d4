from __future__ import annotations

from dataclasses import replace

import pytest

from hookcheck.contract.verdict import GAPS
from hookcheck.report.summary import CAUSES, GROUPS, judged_cells, new_causes, summary

from .samples import case, deviation, record, records


def test_the_verdict_comes_first() -> None:
    spoiled = records()[1]
    first, *_ = summary(spoiled, 400)
    version = spoiled.header.torch.version
    counts = (
        "2 new deviations (2 causes), 1 known deviation (1 cause), "
        "1 cell conforming, 2 with nothing to judge, 2 crashed or timed out"
    )
    assert first == f"torch {version} on cpu: the run was cut short (interrupted by the user); so far {counts}"
    whole = replace(spoiled, footer=replace(spoiled.footer, complete=True, stopped=""))
    assert summary(whole, 400)[0] == f"torch {version} on cpu: {counts}"


def test_a_cause_is_told_once_however_many_cells_it_makes_red() -> None:
    kinds, families = ("backward", "full_backward"), ("single-node", "residual", "view")
    run_record = record("2.0.1", [case("aaaa", kind, [deviation()], family) for family in families for kind in kinds])
    (cause,) = new_causes(run_record)
    assert (cause.clause, cause.gap, cause.cases, cause.families, cause.kinds) == (
        "BW-01",
        "wrong values",
        6,
        families,
        kinds,
    )
    lines = [line for line in summary(run_record, 400) if line.startswith("new: ")]
    assert lines == [
        "new: BW-01, wrong values, in 6 cases (3 families; backward, full_backward); "
        "for one see: hookcheck explain aaaa"
    ]


def test_the_costliest_comes_first() -> None:
    run_record = record("2.0.1", [case("aaaa", "backward", [deviation("new warning"), deviation("wrong values")])])
    assert [cause.gap for cause in new_causes(run_record)] == ["wrong values", "new warning"]


def test_one_case_is_no_more_than_one() -> None:
    assert "1 case: 1 ran, " in " ".join(summary(record("2.0.1", [case("aaaa", "backward")]), 400))


def test_what_was_not_judged_is_counted() -> None:
    run_record = record("2.0.1", [replace(case("aaaa", "backward"), unjudged={"BW-02": 1}), case("bbbb", "backward")])
    assert "not judged, since nobody can foretell what is right: BW-02 in 1 case" in summary(run_record, 400)
    many = {f"BW-{number}": 1 for number in range(10, 20)}
    lines = summary(record("2.0.1", [replace(case("aaaa", "backward"), unjudged={**many})]), 400)
    assert (
        "not judged, since nobody can foretell what is right: BW-10 in 1 case, BW-11 in 1 case, BW-12 in 1 case, "
        "and 7 more clauses" in lines
    )


def test_what_is_unspecified_is_never_called_new() -> None:
    run_record = record("2.0.1", [case("aaaa", "backward", [deviation(clause="BW-03")])])
    assert new_causes(run_record) == ()
    assert "0 new deviations (0 causes), 0 known deviations" in summary(run_record, 400)[0]
    assert "BW-03" in {cell.clause for cell in run_record.cells()} - {cell.clause for cell in judged_cells(run_record)}


def test_what_the_ledger_explains_is_not_new() -> None:
    assert new_causes(record("2.0.1", [case("aaaa", "backward", [deviation(ledger="known")])])) == ()


def test_up_to_three_causes_have_a_sentence_each() -> None:
    deviations = [deviation(clause=f"BW-{number}") for number in range(10, 10 + CAUSES)]
    lines = summary(record("2.0.1", [case("aaaa", "backward", deviations)]), 400)
    assert [line[:10] for line in lines if line.startswith("new")] == ["new: BW-10", "new: BW-11", "new: BW-12"]


def test_many_causes_are_grouped_by_how_they_deviate_the_widest_first() -> None:
    """As one fault in torch makes dozens: each is named once."""
    both = [deviation(clause="BW-10"), deviation(clause="BW-11")]
    cases = [case("aaaa", "backward", [*both, *(deviation(gap, clause="BW-12") for gap in GAPS[1:11])])]
    cases += [case(topology, "backward", both[1:]) for topology in ("bbbb", "cccc")]
    lines = [line for line in summary(record("2.0.1", cases), 400) if line.startswith(("new", "and", "most"))]
    assert lines == [
        f"new, {GAPS[0]}: BW-11 in 3 cases, BW-10 in 1",
        *(f"new, {gap}: BW-12 in 1 case" for gap in GAPS[1:GROUPS]),
        f"and {11 - GROUPS} more new causes (3 silently wrong, 1 not called, 2 called otherwise); all: "
        "hookcheck summary RECORD --format json",
        f"most cases show BW-11, {GAPS[0]}; for one see: hookcheck explain aaaa",
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_many_causes_take_few_lines_and_fit_the_width(width: int) -> None:
    deviations = [deviation(clause=f"BW-{number}") for number in range(10, 40)]
    lacking = [case("bbbb", "backward", outcome="not run", reason=f"it lacks {n}") for n in range(9)]
    lines = summary(record("2.0.1", [case("aaaa", "backward", deviations), *lacking]), width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 18 or width < 80
    text = " ".join(line.strip() for line in lines)
    assert "new, wrong values: BW-10 in 1 case, BW-11 in 1, " in text
    assert f"and {30 - GROUPS} more clauses" in text
    assert "most cases show BW-10, wrong values; for one see: hookcheck explain aaaa" in text
    assert any("hookcheck explain aaaa" in line for line in lines)
    assert "it lacks" not in text
    few = " ".join(summary(record("2.0.1", [case("aaaa", "backward", deviations[:1]), *lacking]), 400))
    assert "not run: it lacks 0 (1 case), and 8 more reasons (8 cases)" in few
