"""What has changed from one result of a case to another, each with its cause: what became of it, and at what cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hookcheck.contract.clause import PIN, UNSPECIFIED
from hookcheck.contract.site import Relation, Site
from hookcheck.contract.verdict import COST_CLASSES, COSTS, CaseResult, Deviation

DISAPPEARED, NEW, CHANGED, PIN_CHANGED = "disappeared", "newly deviating", "changed otherwise", "pin changed"
NO_LONGER_OFFERED, NEWLY_OFFERED, MENDED = "no longer offered", "newly offered", "mended"
STATUSES = (DISAPPEARED, NEW, CHANGED, PIN_CHANGED, NO_LONGER_OFFERED, NEWLY_OFFERED, MENDED)
"""What can have become of a case between two records.

``disappeared``: it ran, or a clause had its say on it, and no longer. ``changed otherwise``: what deviated already does
so in another or a further way. ``pin changed``: what was measured and never promised came out otherwise.
"""

AS_EXPECTED = "as expected"


@dataclass(frozen=True)
class GroupCause:
    """What the cases of a group share; ``reason`` says why they did not run, where that is what has changed."""

    status: str
    worse: bool
    clause: str = ""
    gap: str = ""
    ledger: str | None = None
    reason: str = ""

    @property
    def cost(self) -> str:
        """The class of `COSTS`; empty where no deviation is concerned."""
        return COSTS.get(self.gap, "")


@dataclass(frozen=True)
class GroupExample:
    """One case of a group; the texts are empty where neither record puts the deviation into words.

    ``relation`` and ``site`` are those of the deviation; None where the record that has it does not say them.
    """

    family: str
    topology: str
    kind: str
    expected: str = ""
    before: str = ""
    after: str = ""
    relation: Relation | None = None
    site: Site | None = None


Changes = tuple[tuple[GroupCause, GroupExample], ...]
"""What has changed from one result to another."""


def changes(was: CaseResult, now: CaseResult, ranks: Mapping[str, str]) -> Iterator[tuple[GroupCause, GroupExample]]:
    """What has changed on a case that ran in both, for the clauses that both records judge."""
    where = GroupExample(now.family, now.topology, now.kind)
    earlier, later = _by_subject(was), _by_subject(now)
    had_say, has_say = _judged_subjects(was), _judged_subjects(now)
    fewer = {clause for clause, count in had_say.items() if clause in ranks and has_say[clause] < count}
    if silent := sorted(clause for clause in fewer if not has_say[clause]):
        yield GroupCause(DISAPPEARED, True, reason=f"nothing is left to judge for {', '.join(silent)}"), where
    for subject in dict.fromkeys([*earlier, *later]):
        clause = subject[0]
        if clause not in ranks:
            continue
        had, has = earlier.get(subject, {}), later.get(subject, {})
        gone, come = had.keys() - has.keys(), has.keys() - had.keys()
        for name in sorted(come, key=str):
            yield _come(ranks[clause], has[name], [had[name] for name in gone], list(had.values()), where)
        if come or clause in silent:
            continue
        for name in sorted(gone, key=str):
            cause, words = _gone(ranks[clause], had[name], list(has.values()), where)
            if clause in fewer and not has:  # perhaps nobody looked
                cause = replace(cause, status=DISAPPEARED, worse=True, reason="judged on fewer subjects")
                words = replace(words, after="")
            yield cause, words


def _judged_subjects(case: CaseResult) -> Counter[str]:
    """How many subjects each clause had its say on: a record counts one that deviates in two ways twice."""
    again = Counter(deviation.clause for deviation in case.deviations)
    again.subtract(clause for clause, _ in {(deviation.clause, deviation.subject) for deviation in case.deviations})
    return Counter({clause: count - again[clause] for clause, count in case.judged.items()})


def _by_subject(case: CaseResult) -> dict[tuple[str, str], dict[tuple[str, str | None], Deviation]]:
    """The deviations of a case by clause and subject, and there by gap and ledger entry."""
    subjects: dict[tuple[str, str], dict[tuple[str, str | None], Deviation]] = {}
    for deviation in case.deviations:
        causes = subjects.setdefault((deviation.clause, deviation.subject), {})
        causes.setdefault((deviation.gap, deviation.ledger), deviation)
    return subjects


def _come(
    rank: str, deviation: Deviation, gone: list[Deviation], had: list[Deviation], where: GroupExample
) -> tuple[GroupCause, GroupExample]:
    """A deviation that the earlier record lacks, on a subject that deviated by ``had``, of which ``gone`` is gone."""
    if rank == UNSPECIFIED:
        status, worse = CHANGED, False
    elif rank == PIN:
        status, worse = PIN_CHANGED, True
    else:
        status = CHANGED if had else NEW
        worse = not gone or _place(deviation) < min(map(_place, gone))
    return _cause(status, worse, deviation), _example(where, deviation, _words(had), deviation.observed)


def _gone(
    rank: str, deviation: Deviation, has: list[Deviation], where: GroupExample
) -> tuple[GroupCause, GroupExample]:
    """A deviation that the later record lacks, on a subject that still deviates by ``has``."""
    words = _example(where, deviation, deviation.observed, _words(has))
    return _cause(CHANGED if rank == UNSPECIFIED else MENDED, False, deviation), words


def _example(where: GroupExample, deviation: Deviation, before: str, after: str) -> GroupExample:
    relation, site = deviation.relation, deviation.site
    return replace(where, expected=deviation.expected, before=before, after=after, relation=relation, site=site)


def _cause(status: str, worse: bool, deviation: Deviation) -> GroupCause:
    return GroupCause(status, worse, deviation.clause, deviation.gap, deviation.ledger)


def _words(deviations: Iterable[Deviation]) -> str:
    return "; ".join(deviation.observed or deviation.gap for deviation in deviations) or AS_EXPECTED


def _place(deviation: Deviation) -> int:
    return COST_CLASSES.index(COSTS[deviation.gap])
