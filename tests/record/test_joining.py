"""Is a run in parts, put together, the run as a whole; and is what does not belong together refused?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hookcheck.contract.verdict import NOT_RUN, RAN, CaseResult
from hookcheck.record.joining import CannotJoin, join
from hookcheck.record.model import CORPUS, CorpusFile, Record, tally
from hookcheck.record.reading import read
from hookcheck.record.writing import write

from .samples import CASES, record

ONE, OTHER = Path("one.jsonl.gz"), Path("other.jsonl.gz")


def part(*cases: CaseResult) -> Record:
    """A record of a run of some cases alone."""
    whole = record(cases)
    shown = {case.topology for case in cases if case.deviations}
    plan = replace(whole.header.plan, cases=sum(case.origin == CORPUS for case in cases))
    return replace(
        whole,
        header=replace(whole.header, plan=plan),
        counterexamples=tuple(each for each in whole.counterexamples if each.topology in shown),
        footer=replace(whole.footer, counts=tally(cases)),
    )


@pytest.mark.parametrize("cut", range(1, len(CASES)))
def test_shards_make_the_whole_in_either_order(cut: int, tmp_path: Path) -> None:
    shards = [(ONE, part(*CASES[:cut])), (OTHER, part(*CASES[cut:]))]
    for each in (shards, shards[::-1]):
        joined, differing = join(each)
        assert (joined.cases, joined.counterexamples, differing) == (CASES, record().counterexamples, ())
        assert joined.header.plan.cases == record().header.plan.cases
        assert read(write(joined, tmp_path)) == joined


def test_a_record_joined_with_itself_is_itself() -> None:
    joined, differing = join([(ONE, record()), (OTHER, record())])
    assert (joined.cases, joined.counterexamples, differing) == (CASES, record().counterexamples, ())
    assert joined.header == record().header


def test_what_one_run_missed_another_has() -> None:
    stopped = "interrupted by the user"
    ran = tuple(case for case in CASES if case.outcome == RAN)
    missed = [CaseResult(c.family, c.topology, c.kind, c.origin, NOT_RUN, stopped) for c in ran]
    cut = replace(part(*missed), footer=replace(record().footer, complete=False, stopped=stopped, counts=tally(missed)))
    whole, _ = join([(ONE, cut), (OTHER, part(*ran))])
    assert (whole.cases, whole.footer.complete) == (ran, True)
    still, _ = join([(ONE, cut), (OTHER, part(*ran[:1]))])
    assert (still.footer.complete, still.footer.stopped) == (False, stopped)


def test_runs_of_different_clauses_add_up() -> None:
    ran = next(case for case in CASES if case.outcome == RAN and case.deviations)
    clause = ran.deviations[0].clause
    without = replace(ran, judged={"XX-01": 2}, deviations=())
    joined, differing = join([(ONE, part(without)), (OTHER, part(ran))])
    assert joined.cases[0].judged == {"XX-01": 2, **ran.judged}
    assert joined.cases[0].deviations == ran.deviations
    assert clause in ran.judged or ran.deviations
    assert differing == ()


def test_a_case_that_came_out_differently_is_said_and_counts_as_the_worse() -> None:
    ran = next(case for case in CASES if case.outcome == RAN and case.deviations)
    judged = {deviation.clause: 1 for deviation in ran.deviations}
    worse, better = replace(ran, judged=judged), replace(ran, judged=judged, deviations=())
    for each in ((better, worse), (worse, better)):
        joined, differing = join([(ONE, part(each[0])), (OTHER, part(each[1]))])
        assert joined.cases == (worse,)
        assert differing == (each[1],)


def test_strangers_are_refused() -> None:
    header = record().header
    plan = header.plan
    family = plan.families[0]
    reworded = replace(plan.clauses[0], statement="Else.")
    strangers = {
        "torch": replace(header, torch=replace(header.torch, version="1.8.0")),
        "device": replace(header, device="cuda"),
        "hookcheck": replace(header, hookcheck="0.0.1"),
        "corpora": replace(header, plan=replace(plan, corpus={**plan.corpus, family: CorpusFile(1, "other")})),
        "clause": replace(header, plan=replace(plan, clauses=(reworded, *plan.clauses[1:]))),
    }
    ours = record()
    if family not in plan.corpus:
        ours = replace(ours, header=replace(header, plan=replace(plan, corpus={family: CorpusFile(1, "own")})))
    for word, other in strangers.items():
        with pytest.raises(CannotJoin, match=f"{ONE}.*{word}|{ONE}.*{OTHER}.*{word}"):
            join([(ONE, ours), (OTHER, replace(record(), header=other))])
