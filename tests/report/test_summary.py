from __future__ import annotations

from dataclasses import replace

import pytest

from hookcheck.report.summary import CAUSES, new_causes, summary

from .samples import case, deviation, record, records


def test_the_verdict_comes_first() -> None:
    spoiled = records()[1]
    first, *_ = summary(spoiled, 400)
    version = spoiled.header.torch.version
    assert first == (
        f"torch {version} on cpu: 2 new deviations (2 causes), 1 known deviation (1 cause), "
        "1 cell conforming, 2 with nothing to judge, 2 crashed or timed out"
    )
    assert "the run was cut short: interrupted by the user" in summary(spoiled, 400)


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


def test_what_the_ledger_explains_is_not_new() -> None:
    assert new_causes(record("2.0.1", [case("aaaa", "backward", [deviation(ledger="known")])])) == ()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_many_causes_take_few_lines_and_fit_the_width(width: int) -> None:
    deviations = [deviation(clause=f"BW-{number}") for number in range(10, 40)]
    lacking = [case("bbbb", "backward", outcome="not run", reason=f"it lacks {n}") for n in range(9)]
    lines = summary(record("2.0.1", [case("aaaa", "backward", deviations), *lacking]), width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 25 or width < 80
    text = " ".join(line.strip() for line in lines)
    assert text.count("new: ") == CAUSES
    assert f"and {30 - CAUSES} more new causes, which the record holds" in text
    assert "and 8 more reasons (8 cases)" in text
