"""What does the contract say of one case? Every clause on every subject that it judges, and then the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hookcheck.contract.case import Case
from hookcheck.contract.clause import NOTHING, Clause, Mismatch, Subject
from hookcheck.contract.evidence import Evidence
from hookcheck.contract.features import Features, firing_features
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import Deviation
from hookcheck.topology.model import Topology


@dataclass(frozen=True)
class Finding:
    """A subject that deviates from a clause: its name, how it deviates, and its features for the ledger."""

    clause: str
    subject: str
    mismatch: Mismatch
    features: Features


SORT = ("last", "rank", "bias")
"""The features that tell sorts of one known deviation apart: each has evidence of its own."""

Judgements = tuple[dict[str, int], tuple[Finding, ...]]
"""How many subjects each clause judged, and every one that deviates."""


def judge(case: Case, clauses: Iterable[Clause]) -> Judgements:
    """What ``clauses`` say of every subject of ``case``."""
    judged: dict[str, int] = {}
    findings = []
    kind: Subject | None = None
    subjects: Sequence[Any] = ()
    for clause in clauses:
        if clause.subject is not kind:  # most clauses speak of what the one before speaks of
            kind, subjects = clause.subject, _subjects(case, clause.subject)
        count = 0
        for subject in subjects:
            judgement = clause.judge(case, subject)
            if judgement is NOTHING:
                continue
            count += 1
            if judgement is not None:
                name, features = _described(case, clause.subject, subject)
                findings.append(Finding(clause.id, name, judgement, features))
        if count:
            judged[clause.id] = count
    return judged, tuple(findings)


def explained(
    topology: Topology | None,
    family: str,
    kind: str,
    findings: Iterable[Finding],
    ledger: Ledger,
    evidence: Evidence | None = None,
) -> tuple[Deviation, ...]:
    """The findings as deviations, each with the ledger entry that explains it if one does.

    Beside what is not explained everything is put into words; otherwise what ``evidence`` wants (None: everything), of
    programs, which have no ``topology``, all.
    """
    known = [(f, ledger.explain(f.clause, family, kind, f.mismatch, f.features)) for f in findings]
    if any(entry is None for _, entry in known):
        evidence = None
    return tuple(
        Deviation(finding.clause, finding.subject, finding.mismatch.gap, *words, ledger=entry)
        for finding, entry in known
        for sort in [(finding.clause, kind, entry, *(finding.features.get(key) for key in ledger.sorts(entry, SORT)))]
        for words in [
            finding.mismatch.told()
            if topology is None or evidence is None or evidence.wants(topology, sort)
            else ("", "")
        ]
    )


def _subjects(case: Case, subject: Subject) -> Sequence[Any]:
    if subject is Subject.CALL:
        return case.expected.trace.calls
    if subject is Subject.FIRING:
        return case.pairs
    if subject is Subject.WARNING:
        return case.new_warnings or (None,)
    return case.observed.events if subject is Subject.EVENT else (None,)


def _described(case: Case, kind: Subject, subject: Any) -> tuple[str, Features]:
    """The subject's name, and its features; those of the whole run where an exception took other subjects with it."""
    if kind is Subject.CALL:
        name, features = subject.subject, case.call_features(subject)
    elif kind is Subject.FIRING:
        name, features = subject.firing.call.subject, firing_features(subject.firing)
    elif kind is Subject.EVENT:
        name, features = f"{'.'.join(['net', subject.path] if subject.path else ['net'])}, event {subject.number}", None
    else:
        name, features = "run", None
    return name, case.features if case.observed.raised or features is None else {**features, **case.own}


def unexplained(deviations: Iterable[Deviation]) -> Iterator[Deviation]:
    """Those of ``deviations`` that no ledger entry explains."""
    return (d for d in deviations if d.ledger is None)
