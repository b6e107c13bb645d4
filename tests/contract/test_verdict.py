"""What a cell adds up to. Nothing but a judged and sound subject makes it conform."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from hookcheck.contract.verdict import (
    CONFORMS,
    COST_CLASSES,
    COSTS,
    CRASHED,
    DEVIATES,
    GAPS,
    LOST,
    NOT_OFFERED,
    NOT_RUN,
    OUTCOMES,
    PROGRAM,
    RAN,
    TIMED_OUT,
    VERDICTS,
    CaseResult,
    Cell,
    Deviation,
    cells,
)

GOOD = CaseResult("residual", "aa", "full_backward", "corpus", RAN, judged={"BW-01": 2})
BAD = CaseResult(
    "residual",
    "bb",
    "full_backward",
    "corpus",
    RAN,
    judged={"BW-01": 2},
    deviations=(
        Deviation("BW-01", "net#0", "wrong values", "1", "2"),
        Deviation("BW-01", "net#1", "wrong order", "1", "2", "known"),
        Deviation("BW-02", "net#1", "raised", "1", "2"),
    ),
)
NOTHING_TO_JUDGE = CaseResult("residual", "cc", "full_backward", "corpus", RAN)


def ended(outcome: str) -> CaseResult:
    return CaseResult("residual", "dd", "full_backward", "corpus", outcome, f"it {outcome}")


def verdict(*results: CaseResult) -> tuple[str, str]:
    (cell,) = cells(results, ["BW-01"])
    return cell.verdict, cell.reason


def test_what_was_judged_and_is_sound_conforms() -> None:
    assert verdict(GOOD) == (CONFORMS, "")
    assert verdict(GOOD, NOTHING_TO_JUDGE) == (CONFORMS, "")


def test_nothing_judged_is_not_run() -> None:
    assert verdict(NOTHING_TO_JUDGE) == (NOT_RUN, "no case of this family has anything that the clause speaks of")


@pytest.mark.parametrize("outcome", [o for o in OUTCOMES if o != RAN])
def test_what_did_not_run_never_conforms(outcome: str) -> None:
    assert verdict(ended(outcome)) == (outcome, f"it {outcome}")
    assert verdict(NOTHING_TO_JUDGE, ended(outcome))[0] != CONFORMS


@pytest.mark.parametrize("outcome", LOST)
def test_a_lost_case_is_no_matter_of_clauses_that_judge_none_of_the_others(outcome: str) -> None:
    by_clause = {cell.clause: cell.verdict for cell in cells([GOOD, ended(outcome)], ["BW-01", "OR-01"])}
    assert by_clause == {"BW-01": outcome, "OR-01": NOT_RUN}
    alone = {cell.clause: cell.verdict for cell in cells([ended(outcome)], ["BW-01", "OR-01"])}
    assert alone == {"BW-01": outcome, "OR-01": outcome}  # nothing says what it would have judged


@pytest.mark.parametrize("outcome", [CRASHED, TIMED_OUT, NOT_RUN])
def test_what_was_cut_short_does_not_conform_though_the_rest_does(outcome: str) -> None:
    assert verdict(GOOD, ended(outcome)) == verdict(ended(outcome), GOOD) == (outcome, f"it {outcome}")


def test_what_this_torch_lacks_does_not_take_from_what_conforms() -> None:
    assert verdict(GOOD, ended(NOT_OFFERED)) == (CONFORMS, "")


def test_the_verdict_is_the_one_that_outranks_the_others_in_any_order() -> None:
    results = {
        CRASHED: ended(CRASHED),
        TIMED_OUT: ended(TIMED_OUT),
        DEVIATES: BAD,
        NOT_RUN: ended(NOT_RUN),
        CONFORMS: GOOD,
        NOT_OFFERED: ended(NOT_OFFERED),
    }
    assert tuple(results) == VERDICTS
    for first in range(len(VERDICTS)):
        for group in permutations([results[name] for name in VERDICTS[first:]][:4]):
            assert verdict(*group)[0] == VERDICTS[first]


def test_a_cell_counts_subjects_and_gaps() -> None:
    assert cells([GOOD, BAD], ["BW-01"]) == [
        Cell(
            "BW-01",
            "residual",
            "full_backward",
            DEVIATES,
            "",
            judged=4,
            deviating=2,
            unexplained=1,
            gaps={"wrong values": 1, "wrong order": 1},
            topologies=("bb",),
        )
    ]


def test_what_cannot_be_foretold_is_counted_and_is_no_pass() -> None:
    (cell,) = cells([replace(GOOD, judged={}, unjudged={"BW-01": 3})], ["BW-01"])
    assert (cell.verdict, cell.reason) == (NOT_RUN, "not judged: nobody can foretell what is right")
    assert (cell.judged, cell.unjudged) == (0, 3)


def test_there_is_a_cell_for_every_clause_family_and_kind_it_speaks_of() -> None:
    other = CaseResult("single-node", "ee", "backward", "corpus", RAN, judged={"P2-11": 1})
    table = cells([GOOD, other], ["BW-01", "P2-11"], {"P2-11": ["backward"]})
    assert [(c.clause, c.family, c.kind, c.verdict) for c in table] == [
        ("BW-01", "residual", "full_backward", CONFORMS),
        ("BW-01", "single-node", "backward", NOT_RUN),
        ("P2-11", "single-node", "backward", CONFORMS),
    ]


def test_silent_gaps_cost_more_than_loud_ones() -> None:
    assert GAPS.index("wrong values") < GAPS.index("not fired") < GAPS.index("raised") < GAPS.index("new warning")


def test_every_gap_has_its_cost() -> None:
    assert sorted(COSTS) == sorted(GAPS)
    assert (
        *("silent", "not called", "called otherwise", "exception", "warning", "memory", "rounding"),
    ) == COST_CLASSES


@pytest.mark.parametrize("outcome", [CRASHED, TIMED_OUT, NOT_RUN, NOT_OFFERED])
def test_what_becomes_of_a_program_is_no_matter_of_the_others_in_its_chapter(outcome: str) -> None:
    ran = CaseResult(PROGRAM, "DS-03", "parallel", "corpus", RAN, judged={"DS-03": 7})
    other = CaseResult(PROGRAM, "DS-01", "parallel", "corpus", outcome, "it is about cuda")
    verdicts = {cell.clause: cell.verdict for cell in cells([other, ran], ["DS-01", "DS-03"])}
    assert verdicts == {"DS-01": outcome, "DS-03": CONFORMS}
