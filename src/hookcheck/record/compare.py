"""The difference between two records, case by case, in groups of one cause each.

Only a case that ran in both is compared. A case is known by its family, topology and hook kind; the id of a topology
is a hash of its content, so equal ids are one network even where the corpora differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Optional

import numpy as np

from hookcheck.contract.evidence import order
from hookcheck.contract.verdict import COST_CLASSES, NOT_OFFERED, PROGRAM, RAN, CaseResult
from hookcheck.record.changes import (
    DISAPPEARED,
    NEWLY_OFFERED,
    NO_LONGER_OFFERED,
    STATUSES,
    Changes,
    GroupCause,
    GroupExample,
    changes,
)
from hookcheck.record.model import CORPUS, Counterexample, Header, Record
from hookcheck.record.rows import Key, Rows, name_of
from hookcheck.record.uncompared import (
    ROUNDED,
    LeftOut,
    clauses_left_out,
    compute_otherwise,
    is_of_rounding,
    left_out,
    unlike,
)
from hookcheck.topology.codec import TopologyError, decode
from hookcheck.topology.primitive import Array


@dataclass(frozen=True)
class Group:
    """All cases with one cause: how many there are, where, and the smallest that is in words.

    Sizes are known of networks whose content a record holds or that are in the corpus; of others the first by id stands
    for the group.
    """

    cause: GroupCause
    cases: int
    families: tuple[str, ...]
    kinds: tuple[str, ...]
    example: GroupExample


Size = Callable[[str], tuple[Any, ...]]
Length = Callable[[str], Optional[int]]
_Wanted = Callable[[CaseResult], bool]


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
    length: Length = lambda topology: None,
    varying: Collection[str] = (),
) -> Comparison:
    """The difference between two records, of the hook kinds ``kinds`` (of all, where none is named).

    Where kinds are named, the programs whose ids are in ``programs`` are compared as well; the others are left out, and
    counted. ``length`` is that of the JSON of a network of the corpus, by id: which is the smallest, of those whose
    content no record holds. ``varying`` are the ids of entries of the ledger that show now and then: a case has not
    changed where one of them, and no other entry, shows in one record alone.
    """
    wanted = _wanted(kinds, programs)
    old, new = _by_key(before, wanted), _by_key(after, wanted)
    size = sizes([*before.counterexamples, *after.counterexamples], length)
    rows, was, now = _rows(old, new, size)
    known = KnownChanges(rows.results, common_ranks(before.header, after.header), varying)
    comparison = compare_rows(rows, was, now, before.header, after.header, known)
    return replace(comparison, left_out=(*comparison.left_out, *_programs_left_out(after, wanted)))


def _rows(old: dict[Key, CaseResult], new: dict[Key, CaseResult], size: Size) -> tuple[Rows, Array, Array]:
    """The cases of two runs as rows, and the numbers of the results that they had in each."""
    keys = [
        key for key in dict.fromkeys([*old, *new]) if key not in old or key not in new or _apart(old[key], new[key])
    ]
    keys.sort(key=lambda key: (size(key[1]), key))
    keys += [key for key in old if key in new and not _apart(old[key], new[key])]  # nobody asks for the smallest
    names: dict[Key, int] = {}
    places = [names.setdefault(name_of(key), len(names)) for key in keys]
    results: list[CaseResult] = []
    numbers: dict[Any, int] = {}

    def number(case: CaseResult | None) -> int:
        if case is None:
            return -1
        # what a file says of many cases at once is one object
        alike = case.origin, case.outcome, case.reason, id(case.judged), id(case.deviations)
        if alike not in numbers:
            numbers[alike] = len(results)
            results.append(case)
        return numbers[alike]

    was, now = (np.array([number(cases.get(key)) for key in keys], np.int64) for cases in (old, new))
    rows = Rows(keys, tuple(names), np.array(places, np.int64), np.ones(len(keys), np.int64), results)
    return rows, was, now


def _apart(was: CaseResult, now: CaseResult) -> bool:
    return was.deviations != now.deviations or was.judged != now.judged or was.outcome != now.outcome


class KnownChanges:
    """What has changed from one of ``results`` to another, for comparisons of runs with the same `common_ranks`.

    Thousands of pairs of results have the same changes; these are there once, in ``distinct``, without any first.
    """

    def __init__(self, results: Sequence[CaseResult], ranks: Mapping[str, str], varying: Collection[str]) -> None:
        """``ranks`` has the class of each clause that the runs judge; ``varying`` is as `compare` has it."""
        self._results, self._ranks, self._varying = results, ranks, frozenset(varying)
        self._places: dict[int, int] = {}
        self._numbers: dict[Changes, int] = {(): 0}
        self.distinct: list[Changes] = [()]

    def places(self, was: Array, now: Array) -> Array:
        """Where in ``distinct`` that stands which has changed from each result in ``was`` to that in ``now``."""
        pairs, inverse = np.unique(was * len(self._results) + now, return_inverse=True)
        return np.array([self._place(pair) for pair in pairs.tolist()], np.int64)[inverse]

    def _place(self, pair: int) -> int:
        place = self._places.get(pair)
        if place is None:
            changed = self._changes(*(self._results[number] for number in divmod(pair, len(self._results))))
            place = self._places[pair] = self._numbers.setdefault(changed, len(self.distinct))
            if place == len(self.distinct):
                self.distinct.append(changed)
        return place

    def _changes(self, was: CaseResult, now: CaseResult) -> Changes:
        """Each cause once, with the first of its examples that is in words."""
        if was.deviations == now.deviations and was.judged == now.judged:
            return ()
        differing = _entries(was) ^ _entries(now)
        if differing and differing <= self._varying:  # and what it raises leaves other clauses without a say
            return ()
        causes: dict[GroupCause, GroupExample] = {}
        for cause, words in changes(was, now, self._ranks):
            cause = _the(cause)
            if words.expected and not causes.get(cause, words).expected:
                causes[cause] = words
            causes.setdefault(cause, words)
        return tuple(causes.items())


def _entries(case: CaseResult) -> frozenset[str | None]:
    """The entries of the ledger that explain what deviates."""
    return frozenset(deviation.ledger for deviation in case.deviations)


def compare_rows(rows: Rows, was: Array, now: Array, before: Header, after: Header, known: KnownChanges) -> Comparison:
    """The difference between the runs ``before`` and ``after``, in which ``rows`` had the results ``was`` and ``now``:
    their numbers, or -1 of a row that the run lacks.

    ``known`` is that of the results of ``rows``, for comparisons of other runs of the same rows.
    """
    both = (was >= 0) & (now >= 0) & rows.ran[was] & rows.ran[now]
    sightings: list[_Sighting] = []
    other = np.flatnonzero(both & (was != now))
    for place, group in rows.groups(other, known.places(was[other], now[other])):
        sightings += [(cause, words, group) for cause, words in known.distinct[place]]
    aside: dict[tuple[str, bool], tuple[set[str], int]] = {}
    if compute_otherwise(before, after):
        rounding = [sighting for sighting in sightings if is_of_rounding(sighting[0])]
        sightings = [sighting for sighting in sightings if not is_of_rounding(sighting[0])]
        if rounding:
            _put_aside(aside, (ROUNDED, False), rows, np.unique(np.concatenate([group for *_, group in rounding])))
    some = np.flatnonzero(~both & ((was >= 0) | (now >= 0)))
    # Whether a run should have a case that it lacks is a matter of the family, the hook kind and the program.
    lacking = np.where((was[some] < 0) | (now[some] < 0), rows.places[some] + 1, 0)
    ends = rows.ends[was[some]] * (len(rows.results) + 1) + rows.ends[now[some]]
    for _, group in rows.groups(some, ends * (len(rows.names) + 1) + lacking):
        first = rows.keys[group[0]], rows.result(was[group[0]]), rows.result(now[group[0]])
        if change := _availability(*first, before, after):
            sightings.append((_the(change[0]), change[1], group))
        if why := left_out(*first, before, after):
            _put_aside(aside, why, rows, group)
    all_left_out = [LeftOut(why, tuple(sorted(names)), count, lost) for (why, lost), (names, count) in aside.items()]
    all_left_out.sort(key=lambda item: (not item.lost, -item.cases, item.why))
    clauses = clauses_left_out(before, after)
    compared = int(rows.cases[both].sum())
    return Comparison(before, after, compared, _grouped(sightings, rows), (*clauses, *all_left_out))


def _put_aside(
    aside: dict[tuple[str, bool], tuple[set[str], int]], why: tuple[str, bool], rows: Rows, group: Array
) -> None:
    families, cases = aside.get(why, (set(), 0))
    places = np.unique(rows.places[group]).tolist()
    aside[why] = families.union(rows.families_and_kinds(tuple(places))[0]), cases + int(rows.cases[group].sum())


def common_ranks(before: Header, after: Header) -> dict[str, str]:
    """The class of each clause that both runs judge."""
    ranks = {clause.id: clause.rank for clause in after.plan.clauses}
    return {clause.id: ranks[clause.id] for clause in before.plan.clauses if clause.id in ranks}


def of_cost(comparison: Comparison, costs: Collection[str]) -> Comparison:
    """``comparison`` with the groups of these classes of cost alone; what disappeared may be of any, and stays."""
    groups = (g for g in comparison.groups if g.cause.cost in costs or g.cause.status == DISAPPEARED)
    return replace(comparison, groups=tuple(groups))


def _wanted(kinds: Collection[str], programs: Collection[str]) -> _Wanted:
    """Whether a case is asked for."""
    return lambda case: not kinds or case.kind in kinds or (case.family == PROGRAM and case.topology in programs)


def _by_key(record: Record, wanted: _Wanted) -> dict[Key, CaseResult]:
    """The cases by family, topology and kind; one of the corpus goes before one that exploration came upon too."""
    cases = [case for case in record.cases if wanted(case)]
    cases.sort(key=lambda case: case.origin == CORPUS)
    return {(case.family, case.topology, case.kind): case for case in cases}


def _availability(
    key: Key, was: CaseResult | None, now: CaseResult | None, before: Header, after: Header
) -> tuple[GroupCause, GroupExample] | None:
    """What has changed where a case ran in one record alone; None where that says nothing."""
    if was is not None and was.outcome == RAN:
        if now is None:
            if unlike(key, was, before, after):
                return None
            return GroupCause(DISAPPEARED, True, reason="not in the record"), GroupExample(*key, before=RAN)
        cause = GroupCause(NO_LONGER_OFFERED if now.outcome == NOT_OFFERED else DISAPPEARED, True, reason=_outcome(now))
        return cause, GroupExample(*key, before=_outcome(was), after=_outcome(now))
    if was is not None and was.outcome == NOT_OFFERED and now is not None and now.outcome == RAN:
        cause = GroupCause(NEWLY_OFFERED, False, reason=_outcome(was))
        return cause, GroupExample(*key, before=_outcome(was), after=_outcome(now))
    return None


def _outcome(case: CaseResult) -> str:
    return f"{case.outcome}: {case.reason}" if case.reason else case.outcome


@cache
def _the(cause: GroupCause) -> GroupCause:
    """The one object that stands for all equal causes, so that they are grouped without looking at their texts."""
    return cause


_Sighting = tuple[GroupCause, GroupExample, Array]
"""A cause, how it shows, and the rows in which it does."""


def _grouped(sightings: list[_Sighting], rows: Rows) -> tuple[Group, ...]:
    if not sightings:
        return ()
    causes: dict[int, tuple[int, GroupCause]] = {}
    numbers = np.array([causes.setdefault(id(cause), (len(causes), cause))[0] for cause, _, _ in sightings])
    untold = np.array([not words.expected for _, words, _ in sightings])
    items = np.repeat(np.arange(len(sightings)), [len(group) for _, _, group in sightings])
    flat = np.concatenate([group for _, _, group in sightings])
    # of each cause what is in words first, and then the smallest
    order = np.lexsort((flat, untold[items], numbers[items]))
    flat, items = flat[order], items[order]
    starts = np.flatnonzero(np.diff(numbers[items], prepend=-1))
    cases = np.add.reduceat(rows.cases[flat], starts).tolist()
    firsts, examples = flat[starts].tolist(), items[starts].tolist()
    places = rows.places_of(numbers[items], flat)
    groups = []
    for number, cause in causes.values():
        family, topology, kind = rows.keys[firsts[number]]
        example = replace(sightings[examples[number]][1], family=family, topology=topology, kind=kind)
        groups.append(Group(cause, cases[number], *rows.families_and_kinds(places[number]), example))
    return tuple(sorted(groups, key=cost_order))


def cost_order(group: Group) -> tuple[Any, ...]:
    """A key that puts groups in the order of their readers.

    What disappeared may have been of any cost and comes first; then by cost; what concerns no clause comes last.
    """
    cause = group.cause
    place = COST_CLASSES.index(cause.cost) if cause.cost else len(COST_CLASSES)
    first = cause.status != DISAPPEARED
    rest = cause.clause, cause.gap, cause.worse, cause.ledger is None, cause.ledger or "", cause.reason
    return first, place, STATUSES.index(cause.status), -group.cases, *rest


def sizes(counterexamples: Iterable[Counterexample], length: Length = lambda topology: None) -> Size:
    """A function from ids to sizes that sort: first networks that are counterexamples, then those whose ``length`` is
    known, then all others."""
    contents = {e.topology: e.content for e in counterexamples if e.content}

    @cache
    def size(topology: str) -> tuple[Any, ...]:
        try:
            return 0, order(decode(contents[topology]))
        except (KeyError, TopologyError):  # a record may hold what another hookcheck wrote
            known = length(topology)
            return (2,) if known is None else (1, known)

    return size


def _programs_left_out(record: Record, wanted: _Wanted) -> list[LeftOut]:
    count = sum(case.family == PROGRAM and not wanted(case) for case in record.cases)
    why = "programs that register none of the hook kinds that were named"
    return [LeftOut(why, (PROGRAM,), count, False)] if count else []
