"""The difference between two records, case by case, in groups of one cause each.

Only a case that ran in both is compared. A case is known by its family, topology and hook kind; the id of a topology
is a hash of its content, so equal ids are one network even where the corpora differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hookcheck.contract.clause import PIN, UNSPECIFIED
from hookcheck.contract.evidence import order
from hookcheck.contract.verdict import (
    COST_CLASSES,
    COSTS,
    NOT_OFFERED,
    PROGRAM,
    RAN,
    CaseResult,
    Deviation,
)
from hookcheck.record.model import CORPUS, Header, Record
from hookcheck.topology.codec import TopologyError, decode

DISAPPEARED, NEW, CHANGED, PIN_CHANGED = "disappeared", "newly deviating", "changed otherwise", "pin changed"
NO_LONGER_OFFERED, NEWLY_OFFERED, MENDED = "no longer offered", "newly offered", "mended"
STATUSES = (DISAPPEARED, NEW, CHANGED, PIN_CHANGED, NO_LONGER_OFFERED, NEWLY_OFFERED, MENDED)
"""What can have become of a case between two records.

``disappeared``: it ran, or a clause had its say on it, and no longer. ``changed otherwise``: what deviated already does
so in another or a further way. ``pin changed``: what was measured and never promised came out otherwise.
"""

AS_EXPECTED = "as expected"

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Cause:
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
class Example:
    """One case of a group; the texts are empty where neither record puts the deviation into words."""

    family: str
    topology: str
    kind: str
    expected: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Group:
    """All cases with one cause: how many there are, where, and the smallest that is in words.

    Sizes are known of networks whose content a record holds or that are in the corpus; of others the first by id stands
    for the group.
    """

    cause: Cause
    cases: int
    families: tuple[str, ...]
    kinds: tuple[str, ...]
    example: Example


@dataclass(frozen=True)
class LeftOut:
    """Cases that cannot be compared; ``lost`` where the earlier record answers for them and the later one cannot."""

    why: str
    families: tuple[str, ...]
    cases: int
    lost: bool


@dataclass(frozen=True)
class Comparison:
    """The difference between two records; ``compared`` counts the cases that ran in both."""

    before: Header
    after: Header
    compared: int
    groups: tuple[Group, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def worse(self) -> bool:
        """Whether anything is worse than it was."""
        return any(group.cause.worse for group in self.groups)

    @property
    def conclusive(self) -> bool:
        """Whether the later record answers for everything that the earlier one does."""
        return self.compared > 0 and not any(item.lost for item in self.left_out)


def compare(
    before: Record,
    after: Record,
    kinds: Collection[str] = (),
    programs: Collection[str] = (),
    length: Callable[[str], int | None] = lambda topology: None,
) -> Comparison:
    """The difference between two records, of the hook kinds ``kinds`` (of all, where none is named).

    Where kinds are named, the programs whose ids are in ``programs`` are compared as well; the others are left out, and
    counted. ``length`` is that of the JSON of a network of the corpus, by id: which is the smallest, of those whose
    content no record holds.
    """
    wanted = _wanted(kinds, programs)
    old, new = _by_key(before, wanted), _by_key(after, wanted)
    left_out = [*_clauses_left_out(before, after), *_cases_left_out(old, new, before, after)]
    left_out += _programs_left_out(after, wanted)
    compared = sum(old[key].outcome == RAN == new[key].outcome for key in old.keys() & new.keys())
    groups = _grouped(_sightings(old, new, before, after), _sizes(length, before, after))
    return Comparison(before.header, after.header, compared, groups, tuple(left_out))


def of_cost(comparison: Comparison, costs: Collection[str]) -> Comparison:
    """``comparison`` with the groups of these classes of cost alone; what disappeared may be of any, and stays."""
    groups = (g for g in comparison.groups if g.cause.cost in costs or g.cause.status == DISAPPEARED)
    return replace(comparison, groups=tuple(groups))


_Wanted = Callable[[CaseResult], bool]


def _wanted(kinds: Collection[str], programs: Collection[str]) -> _Wanted:
    """Whether a case is asked for."""
    return lambda case: not kinds or case.kind in kinds or (case.family == PROGRAM and case.topology in programs)


def _by_key(record: Record, wanted: _Wanted) -> dict[Key, CaseResult]:
    """The cases by family, topology and kind; one of the corpus goes before one that exploration came upon too."""
    cases = [case for case in record.cases if wanted(case)]
    cases.sort(key=lambda case: case.origin == CORPUS)
    return {(case.family, case.topology, case.kind): case for case in cases}


def _sightings(
    old: Mapping[Key, CaseResult], new: Mapping[Key, CaseResult], before: Record, after: Record
) -> Iterator[tuple[Cause, Example]]:
    ranks = {clause.id: clause.rank for clause in after.header.plan.clauses}
    ranks = {clause.id: ranks[clause.id] for clause in before.header.plan.clauses if clause.id in ranks}
    for key, was in old.items():
        if key not in new:
            if was.outcome == RAN and not _unlike(was, before, after):
                yield Cause(DISAPPEARED, True, reason="not in the record"), Example(*key, before=RAN)
        elif was.outcome == RAN == new[key].outcome:
            if was.deviations != new[key].deviations or was.judged != new[key].judged:
                yield from _changes(was, new[key], ranks)
        elif cause := _availability(was, new[key]):
            yield cause, Example(*key, before=_outcome(was), after=_outcome(new[key]))


def _availability(was: CaseResult, now: CaseResult) -> Cause | None:
    """What has changed where a case ran in one record alone; None where that says nothing."""
    if was.outcome == RAN:
        status = NO_LONGER_OFFERED if now.outcome == NOT_OFFERED else DISAPPEARED
        return Cause(status, True, reason=_outcome(now))
    if was.outcome == NOT_OFFERED and now.outcome == RAN:
        return Cause(NEWLY_OFFERED, False, reason=_outcome(was))
    return None


def _outcome(case: CaseResult) -> str:
    return f"{case.outcome}: {case.reason}" if case.reason else case.outcome


def _changes(was: CaseResult, now: CaseResult, ranks: Mapping[str, str]) -> Iterator[tuple[Cause, Example]]:
    """What has changed on a case that ran in both, for the clauses that both records judge."""
    where = Example(now.family, now.topology, now.kind)
    earlier, later = _by_subject(was), _by_subject(now)
    had_say, has_say = _judged_subjects(was), _judged_subjects(now)
    fewer = {clause for clause, count in had_say.items() if clause in ranks and has_say[clause] < count}
    if silent := sorted(clause for clause in fewer if not has_say[clause]):
        yield Cause(DISAPPEARED, True, reason=f"nothing is left to judge for {', '.join(silent)}"), where
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
    rank: str, deviation: Deviation, gone: list[Deviation], had: list[Deviation], where: Example
) -> tuple[Cause, Example]:
    """A deviation that the earlier record lacks, on a subject that deviated by ``had``, of which ``gone`` is gone."""
    if rank == UNSPECIFIED:
        status, worse = CHANGED, False
    elif rank == PIN:
        status, worse = PIN_CHANGED, True
    else:
        status = CHANGED if had else NEW
        worse = not gone or _place(deviation) < min(map(_place, gone))
    words = replace(where, expected=deviation.expected, before=_words(had), after=deviation.observed)
    return _cause(status, worse, deviation), words


def _gone(rank: str, deviation: Deviation, has: list[Deviation], where: Example) -> tuple[Cause, Example]:
    """A deviation that the later record lacks, on a subject that still deviates by ``has``."""
    words = replace(where, expected=deviation.expected, before=deviation.observed, after=_words(has))
    return _cause(CHANGED if rank == UNSPECIFIED else MENDED, False, deviation), words


def _cause(status: str, worse: bool, deviation: Deviation) -> Cause:
    return Cause(status, worse, deviation.clause, deviation.gap, deviation.ledger)


def _words(deviations: Iterable[Deviation]) -> str:
    return "; ".join(deviation.observed or deviation.gap for deviation in deviations) or AS_EXPECTED


def _place(deviation: Deviation) -> int:
    return COST_CLASSES.index(COSTS[deviation.gap])


def _grouped(sightings: Iterable[tuple[Cause, Example]], size: Callable[[str], tuple[Any, ...]]) -> tuple[Group, ...]:
    grouped: dict[Cause, list[Example]] = {}
    for cause, example in sightings:
        grouped.setdefault(cause, []).append(example)
    return tuple(sorted((_group(cause, items, size) for cause, items in grouped.items()), key=_cost_order))


def _group(cause: Cause, examples: list[Example], size: Callable[[str], tuple[Any, ...]]) -> Group:
    return Group(
        cause=cause,
        cases=len({(example.family, example.topology, example.kind) for example in examples}),
        families=tuple(sorted({example.family for example in examples})),
        kinds=tuple(sorted({example.kind for example in examples})),
        example=min(examples, key=lambda e: (not e.expected, size(e.topology), e.family, e.topology, e.kind)),
    )


def _cost_order(group: Group) -> tuple[Any, ...]:
    """What disappeared may have been of any cost and comes first; then by cost; what concerns no clause comes last."""
    cause = group.cause
    place = COST_CLASSES.index(cause.cost) if cause.cost else len(COST_CLASSES)
    first = cause.status != DISAPPEARED
    return first, place, STATUSES.index(cause.status), -group.cases, cause.clause, cause.gap, str(cause), cause.reason


def _sizes(length: Callable[[str], int | None], *records: Record) -> Callable[[str], tuple[Any, ...]]:
    """A function from ids to sizes that sort: first networks whose content a record holds, then the corpus's by
    ``length``, then all others."""
    contents = {e.topology: e.content for record in records for e in record.counterexamples if e.content}

    @cache
    def size(topology: str) -> tuple[Any, ...]:
        try:
            return 0, order(decode(contents[topology]))
        except (KeyError, TopologyError):  # a record may hold what another hookcheck wrote
            known = length(topology)
            return (2,) if known is None else (1, known)

    return size


def _clauses_left_out(before: Record, after: Record) -> Iterator[LeftOut]:
    old, new = ({clause.id for clause in record.header.plan.clauses} for record in (before, after))
    for ids, which, lost in ((old - new, "earlier", True), (new - old, "later", False)):
        if ids:
            yield LeftOut(f"only the {which} run judged {', '.join(sorted(ids))}", (), 0, lost)


def _programs_left_out(record: Record, wanted: _Wanted) -> list[LeftOut]:
    count = sum(case.family == PROGRAM and not wanted(case) for case in record.cases)
    why = "programs that register none of the hook kinds that were named"
    return [LeftOut(why, (PROGRAM,), count, False)] if count else []


def _cases_left_out(
    old: Mapping[Key, CaseResult], new: Mapping[Key, CaseResult], before: Record, after: Record
) -> list[LeftOut]:
    grouped: dict[tuple[str, bool], list[str]] = {}
    for key, case in old.items():
        if key not in new:
            why = _unlike(case, before, after)
            lost = case.origin == CORPUS and case.outcome == RAN and why != _OTHER_CORPUS
        else:
            why, lost = _not_compared(case, new[key]), False
        if why:
            grouped.setdefault((why.format("earlier", "later"), lost), []).append(case.family)
    for key, case in new.items():
        if key not in old:
            why = _unlike(case, after, before) or _ABSENT
            grouped.setdefault((why.format("later", "earlier"), False), []).append(case.family)
    return [LeftOut(why, tuple(sorted(set(names))), len(names), lost) for (why, lost), names in grouped.items()]


_OTHER_CORPUS = "only the corpus of the {0} run has these networks"
_ABSENT = "the {1} record lacks them"


def _unlike(case: CaseResult, here: Record, there: Record) -> str:
    """Why the record ``there`` never set out to run a case of the record ``here``; empty where it did."""
    mine, other = here.header.plan, there.header.plan
    if case.origin != CORPUS:
        return "only the {0} run came upon these new networks"
    if case.family not in other.families:
        return "the {1} run leaves out the family"
    if case.kind not in other.kinds:
        return "the {1} run leaves out the hook kind"
    if case.family == PROGRAM:
        return "" if case.topology in {clause.id for clause in other.clauses} else "the {1} run lacks the program"
    if mine.corpus.get(case.family) != other.corpus.get(case.family):
        return _OTHER_CORPUS
    return ""


def _not_compared(was: CaseResult, now: CaseResult) -> str:
    """Why a case that is in both records is not compared; empty where it is."""
    if was.outcome == RAN or (was.outcome == NOT_OFFERED and now.outcome == RAN):
        return ""
    if was.outcome == now.outcome:
        return f"{now.outcome} in both"
    return f"{was.outcome} in the earlier run, {now.outcome} in the later"
