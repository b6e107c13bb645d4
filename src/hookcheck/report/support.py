"""Support data: for each clause and hook kind, in which releases of torch it holds, worked out from records alone.

A statement covers the releases, next to each other among those that were run, in which the clause came out alike. It
says which releases were run before and after it: what became of the releases between is not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import groupby
from typing import Any

from packaging.version import Version

from hookcheck.contract.clause import PIN, UNSPECIFIED
from hookcheck.contract.verdict import GAPS, LOST, NOT_OFFERED, PROGRAM, RAN, CaseResult, Deviation
from hookcheck.record.lines import canonical
from hookcheck.record.model import PlannedClause, Record, public_version, record_name
from hookcheck.report.statement import SCHEMA

HOLDS, PARTIAL, FAILS, CHANGED = "holds", "partial", "fails", "changed"
NOT_IN_TORCH, UNKNOWN = "not offered", "unknown"
STATES = (HOLDS, PARTIAL, FAILS, CHANGED, NOT_IN_TORCH, UNKNOWN)
"""How a clause comes out with a hook kind in one release: always, in a part of what was judged, or never as stated; of
a pin, other than it was measured; without an answer, since torch lacks what it is about, or since nothing judged it."""

Key = tuple[str, str, str]
"""Clause, hook kind (of a program the chapter) and device."""


def schema() -> dict[str, Any]:
    """The published JSON Schema of the file."""
    text = files("hookcheck.report").joinpath("support.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@dataclass
class _KindSum:
    """What the cases of one clause and hook kind add up to in one record."""

    judged: int = 0
    subjects: set[tuple[str, str]] = field(default_factory=set)
    causes: dict[tuple[str, str | None], list[tuple[CaseResult, Deviation]]] = field(default_factory=dict)
    lost: dict[str, list[CaseResult]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KindOutcome:
    """How a clause came out with a hook kind in one record: one of `STATES`, and what it rests on."""

    record: str
    release: str
    state: str
    reason: str
    causes: tuple[Mapping[str, Any], ...]

    @property
    def alike(self) -> tuple[Any, ...]:
        """What two answers share that make one statement."""
        return self.state, self.reason, tuple((cause["gap"], cause["ledger"]) for cause in self.causes)


def support(records: Iterable[Record]) -> dict[str, Any]:
    """The content of ``support.json``: a pure function of the records, in whatever order they come."""
    sources: dict[str, Any] = {}
    clauses: dict[str, PlannedClause] = {}
    answers: dict[Key, list[KindOutcome]] = {}
    for record in sorted(records, key=lambda r: (Version(r.header.torch.version), r.header.device)):
        name = record_name(record.header.torch.version, record.header.device).partition(".jsonl")[0]
        sources[name] = _described(record)
        clauses.update((clause.id, clause) for clause in record.header.plan.clauses)
        for (clause, kind), answer in _answers(record, name).items():
            answers.setdefault((clause, kind, record.header.device), []).append(answer)
    contents: dict[str, Any] = {
        id: {"class": clause.rank, "statement": clause.statement, "source": clause.source, "support": []}
        for id, clause in clauses.items()
        if clause.rank != UNSPECIFIED
    }
    for (clause_id, kind, device), given in answers.items():
        statements = list(_statements(given))
        contents[clause_id]["support"].append({"kind": kind, "device": device, "statements": statements})
    return {"schema": SCHEMA, "records": sources, "clauses": contents}


def text(content: Mapping[str, Any]) -> str:
    """The file: JSON with a line for each record and for each clause's hook kind, so that a difference shows."""
    head = [f'"schema": {content["schema"]}', '"records": {' + _lines(content["records"]) + "}"]
    clauses = []
    for id, clause in content["clauses"].items():
        kinds = ",\n  ".join(canonical(each) for each in clause["support"])
        rest = canonical({name: value for name, value in clause.items() if name != "support"})[1:-1]
        clauses.append(f'{json.dumps(id)}: {{{rest}, "support": [\n  {kinds}]}}')
    return "{\n" + ",\n".join([*head, '"clauses": {\n' + ",\n".join(clauses) + "\n}"]) + "\n}\n"


def _lines(items: Mapping[str, Any]) -> str:
    return ",".join(f"\n{json.dumps(name)}: {canonical(item)}" for name, item in items.items())


def _described(record: Record) -> dict[str, Any]:
    header = record.header
    return {
        "torch": header.torch.version,
        "release": public_version(header.torch.version),
        "git": header.torch.git,
        "device": header.device,
        "python": header.environment.get("python", ""),
        "made": header.started,
        "hookcheck": header.hookcheck,
        "profile": header.plan.profile,
        "seed": header.plan.seed,
        "complete": record.footer.complete,
    }


def _answers(record: Record, name: str) -> dict[tuple[str, str], KindOutcome]:
    release = public_version(record.header.torch.version)
    ranks = {clause.id: clause.rank for clause in record.header.plan.clauses if clause.rank != UNSPECIFIED}
    return {
        key: KindOutcome(name, release, *_came_out(total, ranks[key[0]]))
        for key, total in _sums(record, set(ranks)).items()
    }


def _sums(record: Record, judged: set[str]) -> dict[tuple[str, str], _KindSum]:
    kinds = {clause.id: clause.kinds for clause in record.header.plan.clauses if clause.id in judged}
    sums = {(id, kind): _KindSum() for id, spoken in kinds.items() for kind in spoken}
    by_kind: dict[str, list[str]] = {}
    for id, kind in sums:
        by_kind.setdefault(kind, []).append(id)
    networks = {case.kind for case in record.cases if case.family != PROGRAM}
    programs = {id for id, spoken in kinds.items() if networks.isdisjoint(spoken)}
    spoken: dict[tuple[str, str], set[str]] = {}
    for case in record.cases:
        if case.outcome == RAN and case.family != PROGRAM:
            spoken.setdefault((case.family, case.kind), set()).update(case.judged, case.unjudged)
    for case in record.cases:
        if case.outcome != RAN:
            asked = [case.topology] if case.family == PROGRAM else by_kind.get(case.kind, ())
            others = spoken.get((case.family, case.kind), asked) if case.outcome in LOST else asked
            for id in (id for id in asked if id in others):
                if (id, case.kind) in sums and (case.family == PROGRAM) == (id in programs):
                    _account(sums[id, case.kind], case)
            continue
        for id, count in case.judged.items():
            if (id, case.kind) in sums:
                sums[id, case.kind].judged += count
        for deviation in case.deviations:
            if (deviation.clause, case.kind) in sums:
                total = sums[deviation.clause, case.kind]
                total.subjects.add((case.topology, deviation.subject))
                total.causes.setdefault((deviation.gap, deviation.ledger), []).append((case, deviation))
    return sums


def _account(total: _KindSum, case: CaseResult) -> None:
    """Adds a case that did not run."""
    total.reasons.setdefault(case.outcome, case.reason)
    if case.outcome in LOST:
        total.lost.setdefault(case.outcome, []).append(case)


def _came_out(total: _KindSum, rank: str) -> tuple[str, str, tuple[Mapping[str, Any], ...]]:
    causes = [
        _cause(gap, ledger, [case for case, _ in items], next((d for _, d in items if d.worded), items[0][1]))
        for (gap, ledger), items in sorted(
            total.causes.items(), key=lambda item: (GAPS.index(item[0][0]), str(item[0]))
        )
    ]
    causes += [_cause(outcome, None, cases, None) for outcome, cases in total.lost.items()]
    if causes:
        state = CHANGED if rank == PIN else PARTIAL if total.judged > len(total.subjects) else FAILS
        return state, "", tuple(causes)
    if total.judged:
        return HOLDS, "", ()
    if NOT_OFFERED in total.reasons:
        return NOT_IN_TORCH, total.reasons[NOT_OFFERED], ()
    return UNKNOWN, next(iter(total.reasons.values()), "no case has anything that the clause speaks of"), ()


def _cause(gap: str, ledger: str | None, cases: Sequence[CaseResult], example: Deviation | None) -> dict[str, Any]:
    return {
        "gap": gap,
        "ledger": ledger,
        "cases": len({(case.family, case.topology) for case in cases}),
        "families": sorted({case.family for case in cases}),
        "expected": example.expected if example else "",
        "observed": example.observed if example else "",
    }


def _statements(answers: Sequence[KindOutcome]) -> Iterator[dict[str, Any]]:
    spans = [list(group) for _, group in groupby(answers, key=lambda answer: answer.alike)]
    for place, span in enumerate(spans):
        first, last = span[0], span[-1]
        yield {
            "state": first.state,
            "since": first.release,
            "last": last.release,
            "otherwise_before": spans[place - 1][-1].release if place else None,
            "otherwise_after": spans[place + 1][0].release if place + 1 < len(spans) else None,
            "note": note(last.state, last.reason, last.causes),
            "causes": list(last.causes),
            "records": [answer.record for answer in span],
        }


def note(state: str, reason: str, causes: Iterable[Mapping[str, Any]]) -> str:
    """What is otherwise than stated, or why there is no answer, in words; empty where the clause holds."""
    if state in (HOLDS, NOT_IN_TORCH, UNKNOWN):
        return reason
    return "; ".join(_words(cause) for cause in causes)


def _words(cause: Mapping[str, Any]) -> str:
    families = cause["families"]
    where = f" in {', '.join(families)}" if len(families) <= 3 else f" in {len(families)} families"
    known = f" (known: {cause['ledger']})" if cause["ledger"] else ""
    return f"{cause['gap']}{'' if families == [PROGRAM] else where}{known}"
