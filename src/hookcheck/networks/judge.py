"""What does the contract say of one case? Every clause on every subject that it judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from hookcheck.contract.clause import NOT_JUDGED, NOTHING, PROMISE, Clause, Subject
from hookcheck.contract.explaining import Features, Located
from hookcheck.contract.finding import Finding
from hookcheck.networks import legacy
from hookcheck.networks.case import Case
from hookcheck.networks.features import firing_features


class Judgements(NamedTuple):
    """How many subjects each clause judged, and of how many it cannot be foretold what must be seen; and every subject
    that deviates."""

    judged: dict[str, int]
    unjudged: dict[str, int]
    findings: tuple[Located, ...]


def judge(case: Case, clauses: Iterable[Clause]) -> Judgements:
    """What ``clauses`` say of every subject of ``case``."""
    judged: dict[str, int] = {}
    unjudged: dict[str, int] = {}
    findings: list[Located] = []
    kind: Subject | None = None
    subjects: Sequence[Any] = ()
    for clause in clauses:
        if clause.subject is not kind:  # most clauses speak of what the one before speaks of
            kind, subjects = clause.subject, subjects_of(case, clause.subject)
        count = 0
        for subject in subjects:
            judgement = clause.judge(case, subject)
            if judgement is NOTHING:
                continue
            if judgement is NOT_JUDGED:
                unjudged[clause.id] = unjudged.get(clause.id, 0) + 1
                continue
            if isinstance(judgement, Finding):
                located = _located(case, clause, subject, judgement)
                if _may_be_the_node(clause, located):
                    unjudged[clause.id] = unjudged.get(clause.id, 0) + 1
                    continue
                findings.append(located)
            count += 1
        if count:
            judged[clause.id] = count
    return Judgements(judged, unjudged, tuple(findings))


def _may_be_the_node(clause: Clause, located: Located) -> bool:
    """Whether a legacy hook is not called as it advertises, and nobody can foretell how a hook on the Node would be:
    that may be all, or there is a fault, and so it is not judged."""
    about_module = clause.subject in (Subject.CALL, Subject.FIRING)
    unknown = located.features.get("legacy") == frozenset({legacy.NOT_JUDGED})
    return unknown and about_module and clause.rank == PROMISE and located.finding.gap != "raised"


def deviating(case: Case, clause: Clause) -> Iterator[tuple[Any, Located]]:
    """Every subject of ``case`` that deviates from ``clause``, as the judge is asked about it, with what is found."""
    for subject in subjects_of(case, clause.subject):
        judgement = clause.judge(case, subject)
        if isinstance(judgement, Finding):
            located = _located(case, clause, subject, judgement)
            if not _may_be_the_node(clause, located):
                yield subject, located


def _located(case: Case, clause: Clause, subject: Any, finding: Finding) -> Located:
    name, features = describe(case, clause.subject, subject)
    return Located(clause.id, name, finding, features)


def subjects_of(case: Case, subject: Subject) -> Sequence[Any]:
    """All that a clause on such a subject judges in ``case``."""
    if subject is Subject.CALL:
        return case.expected.trace.calls
    if subject is Subject.FIRING:
        return case.pairs
    if subject is Subject.WARNING:
        return case.new_warnings or (None,)
    return case.observed.events if subject is Subject.EVENT else (None,)


def describe(case: Case, kind: Subject, subject: Any) -> tuple[str, Features]:
    """The subject's name, and its features; those of the whole run where an exception took other subjects with it."""
    path: str | None = None
    features: Features = {}
    if kind is Subject.CALL:
        name, path = subject.subject, subject.path
        features = case.call_features(subject)
    elif kind is Subject.FIRING:
        name, path = subject.firing.call.subject, subject.firing.call.path
        features = firing_features(subject.firing)
    elif kind is Subject.EVENT:
        name = f"{'.'.join(['net', subject.path] if subject.path else ['net'])}, event {subject.number}"
    else:
        name = "run"
    whole = case.features if case.observed.raised or path is None else {**features, **case.network_features}
    return name, {**whole, **case.as_a_node(path), **case.beside}
