"""What does the contract say of one case? Every clause that speaks of its hook kind, on every subject it judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hookcheck.contract.case import Case, Features, call_features, firing_features
from hookcheck.contract.clause import NOTHING, Clause, Subject
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import Deviation


def judge(
    case: Case, clauses: Iterable[Clause], family: str, ledger: Ledger
) -> tuple[dict[str, int], tuple[Deviation, ...]]:
    """How many subjects each clause judged, and every deviation, with the ledger entry that explains it if one does."""
    judged: dict[str, int] = {}
    deviations = []
    kind = case.kind.name
    for clause in clauses:
        if kind not in clause.kinds:
            continue
        for subject in _subjects(case, clause.subject):
            judgement = clause.judge(case, subject)
            if judgement is NOTHING:
                continue
            judged[clause.id] = judged.get(clause.id, 0) + 1
            if judgement is not None:
                name, features = _described(case, clause.subject, subject)
                entry = ledger.explain(clause.id, family, kind, judgement, features)
                deviations.append(
                    Deviation(clause.id, name, judgement.gap, judgement.expected, judgement.observed, entry)
                )
    return judged, tuple(deviations)


def _subjects(case: Case, subject: Subject) -> Iterable[Any]:
    if subject is Subject.CALL:
        return case.expected.trace.calls
    if subject is Subject.FIRING:
        return case.pairs
    if subject is Subject.WARNING:
        return case.new_warnings or (None,)
    return case.observed.events if subject is Subject.EVENT else (None,)


def _described(case: Case, kind: Subject, subject: Any) -> tuple[str, Features]:
    """The subject's name, and its features; those of the whole run where an exception took other subjects with it."""
    name: str = "run"
    features = case.features
    if kind is Subject.CALL:
        name, features = subject.subject, call_features(subject)
    elif kind is Subject.FIRING:
        name, features = subject.firing.call.subject, firing_features(subject.firing)
    elif kind is Subject.EVENT:
        name = f"{'.'.join(['net', subject.path] if subject.path else ['net'])}, event {subject.number}"
    return name, case.features if case.observed.raised else features


def unexplained(deviations: Iterable[Deviation]) -> Iterator[Deviation]:
    """Those of ``deviations`` that no ledger entry explains."""
    return (d for d in deviations if d.ledger is None)
