"""Several records of one torch on one device as one: shards of a run, runs of a part, runs on several machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

from hookcheck.contract.verdict import NOT_RUN, RAN, CaseResult, Deviation
from hookcheck.errors import HookcheckError
from hookcheck.record.model import CORPUS, Counterexample, Footer, Header, Plan, Record, ordered, tally
from hookcheck.record.parts import heavier


class CannotJoin(HookcheckError):
    """Two records do not belong together."""


def join(records: Sequence[tuple[Path, Record]]) -> tuple[Record, tuple[CaseResult, ...]]:
    """One record of everything that ``records`` saw, and the cases that came out differently in two of them.

    A case that several records hold keeps the result that weighs most (see `heavier`); where each judged other clauses,
    what all of them judged.

    Raises:
        CannotJoin: two records are of different torches, devices, versions of hookcheck, or of corpora or clauses that
            differ; the message names both files.
    """
    for (path, record), (other_path, other) in zip(records, records[1:]):
        _refuse_strangers(path, record.header, other_path, other.header)
    all_records = [record for _, record in records]
    plan = _plan(all_records)
    results: dict[tuple[str, str, str, str], CaseResult] = {}
    differing = []
    for case in (case for record in all_records for case in record.cases):
        key = (case.family, case.topology, case.kind, case.origin)
        earlier = results.get(key)
        if earlier is not None and _differ(earlier, case):
            differing.append(case)
        results[key] = case if earlier is None else _both(earlier, case)
    cases = ordered(results.values(), plan)
    plan = replace(plan, cases=sum(case.origin == CORPUS for case in cases))
    first = all_records[0].header
    header = replace(
        first,
        started=min(record.header.started for record in all_records),
        environment=_environment([record.header.environment for record in all_records]),
        plan=plan,
    )
    return Record(header, cases, _counterexamples(all_records, cases), _footer(all_records, cases)), tuple(differing)


def _refuse_strangers(first: Path, one: Header, second: Path, other: Header) -> None:
    facts = {
        "torch": (f"{one.torch.version} ({one.torch.git[:8]})", f"{other.torch.version} ({other.torch.git[:8]})"),
        "device": (one.device, other.device),
        "hookcheck": (one.hookcheck, other.hookcheck),
    }
    for what, (left, right) in facts.items():
        if left != right:
            raise CannotJoin(f"{first} is of {what} {left}, {second} of {what} {right}: only runs of one can be merged")
    for family in one.plan.corpus.keys() & other.plan.corpus.keys():
        if one.plan.corpus[family] != other.plan.corpus[family]:
            raise CannotJoin(f"{first} and {second} ran different corpora of {family}: run one of them again")
    clauses = {clause.id: clause for clause in one.plan.clauses}
    for clause in other.plan.clauses:
        if clauses.get(clause.id, clause) != clause:
            raise CannotJoin(f"{first} and {second} say different things of clause {clause.id}: run one of them again")


def _plan(records: Sequence[Record]) -> Plan:
    """What the runs set out to do together; ``cases`` is to be counted."""
    plans = [record.header.plan for record in records]
    return Plan(
        profile=", ".join(dict.fromkeys(plan.profile for plan in plans)),
        seed=plans[0].seed,
        families=tuple(dict.fromkeys(name for plan in plans for name in plan.families)),
        kinds=tuple(dict.fromkeys(name for plan in plans for name in plan.kinds)),
        clauses=tuple({clause.id: clause for plan in plans for clause in plan.clauses}.values()),
        corpus={family: file for plan in plans for family, file in plan.corpus.items()},
        cases=0,
    )


def _differ(one: CaseResult, other: CaseResult) -> bool:
    """Whether two results of a case that both ran contradict each other in a clause that both judged."""
    if (one.outcome, other.outcome) != (RAN, RAN):
        return NOT_RUN not in (one.outcome, other.outcome) and one.outcome != other.outcome
    judged = one.judged.keys() & other.judged.keys()
    return any(_of_clause(one, id) != _of_clause(other, id) for id in judged)


def _both(one: CaseResult, other: CaseResult) -> CaseResult:
    if (one.outcome, other.outcome) != (RAN, RAN):
        return heavier(one, other)
    ids = dict.fromkeys(deviation.clause for case in (one, other) for deviation in case.deviations)
    deviations = [max(_of_clause(one, id), _of_clause(other, id), key=len) for id in ids]
    return replace(
        one,
        judged=_larger(one.judged, other.judged),
        unjudged=_larger(one.unjudged, other.unjudged),
        deviations=tuple(deviation for of_one in deviations for deviation in of_one),
    )


def _of_clause(case: CaseResult, id: str) -> tuple[Deviation, ...]:
    return tuple(deviation for deviation in case.deviations if deviation.clause == id)


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The larger of two counts of each clause, in the order in which the clauses come up."""
    return {id: max(one.get(id, 0), other.get(id, 0)) for id in dict.fromkeys((*one, *other))}


def _environment(environments: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Each setting once; where the machines differ all that they say, one after the other."""

    def add(all_of_them: dict[str, dict[str, None]], one: Mapping[str, str]) -> dict[str, dict[str, None]]:
        for name, value in one.items():
            all_of_them.setdefault(name, {})[value] = None
        return all_of_them

    said: dict[str, dict[str, None]] = reduce(add, environments, {})
    return {name: "; ".join(values) for name, values in said.items()}


def _counterexamples(records: Iterable[Record], cases: Iterable[CaseResult]) -> tuple[Counterexample, ...]:
    deviating = {case.topology for case in cases if case.deviations}
    shown = {each.topology: each for record in records for each in record.counterexamples}
    return tuple(each for id, each in sorted(shown.items()) if id in deviating)


def _footer(records: Sequence[Record], cases: Sequence[CaseResult]) -> Footer:
    """Complete where nothing is missing any more for which one of the runs was stopped."""
    stops = {record.footer.stopped for record in records} - {""}
    stopped = next((case.reason for case in cases if case.outcome == NOT_RUN and case.reason in stops), "")
    return Footer(
        finished=max(record.footer.finished for record in records),
        complete=not stopped,
        stopped=stopped,
        counts=tally(cases),
        explored=sum(record.footer.explored for record in records),
    )
