"""All records together, case by case: which results each case had on every torch, of cases that went alike once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from packaging.version import Version

from hookcheck.contract.verdict import PROGRAM, RAN, CaseResult
from hookcheck.errors import HookcheckError
from hookcheck.record.changes import Changes
from hookcheck.record.compare import Comparison, Pair, Size, compare_pairs, sizes
from hookcheck.record.errors import RecordError
from hookcheck.record.model import CORPUS, Alike, Counterexample, Folded, Footer, Header, PlannedClause
from hookcheck.record.reading import read_folded, record_files
from hookcheck.topology.primitive import Array


class NoRecords(HookcheckError):
    """A folder holds no record."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is where records were looked for."""
        super().__init__(f"there is no record in {folder}; run `pytest conformance/` first")


@dataclass(frozen=True)
class Fault:
    """A file that could not be read as a record."""

    file: str
    text: str


@dataclass(frozen=True)
class Run:
    """The circumstances and the end of one record."""

    header: Header
    footer: Footer

    @property
    def version(self) -> str:
        """Which torch it is: its release, or a build of one's own, and the label of the record."""
        return self.header.build

    @property
    def device(self) -> str:
        """What it ran on."""
        return self.header.device


@dataclass(frozen=True)
class Stratum:
    """``cases`` cases of one family and hook kind that had the same result as each other in every record.

    ``history`` holds a number of `Archive.results` for each run, or -1 where the record lacks the cases. ``topology``
    is the smallest of them by what the counterexamples tell, of others the first by id.
    """

    family: str
    kind: str
    history: tuple[int, ...]
    topology: str
    cases: int


@dataclass(frozen=True)
class Archive:
    """Everything that records say; ``runs`` begin with the newest torch.

    A result stands for cases of many names, so its own family, topology and hook kind are empty. The ``strata`` of the
    smallest networks come first.
    """

    runs: tuple[Run, ...]
    results: tuple[CaseResult, ...]
    strata: tuple[Stratum, ...]
    networks: Mapping[str, Counterexample]
    faults: tuple[Fault, ...] = ()
    _changes: dict[tuple[int, int], Changes] = field(default_factory=dict, repr=False)
    _seen: dict[int, list[tuple[str, str, CaseResult, int, str]]] = field(default_factory=dict, repr=False)

    @cached_property
    def clauses(self) -> dict[str, PlannedClause]:
        """All clauses by id, as the newest torch's record words and orders them."""
        found: dict[str, PlannedClause] = {}
        for run in self.runs:
            for clause in run.header.plan.clauses:
                found.setdefault(clause.id, clause)
        return found

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """All hook kinds and chapters of programs, in the order of the newest torch's record."""
        return tuple(dict.fromkeys(kind for run in self.runs for kind in run.header.plan.kinds))

    @cached_property
    def size(self) -> Size:
        """The size of a network that any record shows, to find the smallest."""
        return sizes(self.networks.values())

    def previous(self, place: int) -> int | None:
        """The place of the run before that at ``place``: of the next older torch on the same device."""
        device = self.runs[place].device
        return next((i for i in range(place + 1, len(self.runs)) if self.runs[i].device == device), None)

    def compare(self, before: int, after: int) -> Comparison:
        """The difference between the runs at two places."""
        earlier, later = self.runs[before].header, self.runs[after].header
        alike = earlier.plan.clauses == later.plan.clauses == self.runs[0].header.plan.clauses
        known = self._changes if alike else {}
        return compare_pairs(self._pairs(before, after), earlier, later, self.size, known)

    def seen(self, place: int) -> Sequence[tuple[str, str, CaseResult, int, str]]:
        """For the run at ``place``, family and hook kind, a result, how many cases had it, and the smallest of them."""
        if place not in self._seen:
            now = self._histories[:, place]
            rows = np.flatnonzero(now >= 0)
            pairings = now[rows] * len(self._names) + self._places[rows]
            _, firsts, groups = np.unique(pairings, return_index=True, return_inverse=True)
            counts = np.bincount(groups, self._cases[rows], len(firsts))
            found = [(self.strata[row], int(count)) for row, count in zip(rows[firsts].tolist(), counts.tolist())]
            self._seen[place] = [(s.family, s.kind, self.results[s.history[place]], n, s.topology) for s, n in found]
        return self._seen[place]

    def _pairs(self, before: int, after: int) -> Iterator[Pair]:
        """The cases of two runs; of those that did not run in both, only how they ended is as it was."""
        was, now = self._histories[:, before], self._histories[:, after]
        both = (was >= 0) & (now >= 0) & self._ran[was] & self._ran[now]
        same = np.flatnonzero(both & (was == now))
        other = np.flatnonzero(both & (was != now))
        some = np.flatnonzero(~both & ((was >= 0) | (now >= 0)))
        ends = np.append(self._ends, -1)  # of a case that is not there
        # Whether a run should have a case that it lacks is a matter of the family, the hook kind and the program.
        lacking = np.where((was[some] < 0) | (now[some] < 0), some + 1, 0)
        pairings = (ends[was[some]] * len(self.results) + ends[now[some]]) * (len(self.strata) + 1) + lacking
        if len(same):
            yield self._pair(same, before, after)
        for group in self._groups(other, was[other] * len(self.results) + now[other]):
            yield self._pair(group, before, after)
        for group in self._groups(some, pairings):
            yield self._pair(group, before, after)

    def _pair(self, rows: Array, before: int, after: int) -> Pair:
        first = self.strata[rows[0]]
        was, now = first.history[before], first.history[after]
        return Pair(
            key=(first.family, first.topology, first.kind),
            was=self.results[was] if was >= 0 else None,
            now=self.results[now] if now >= 0 else None,
            cases=int(self._cases[rows].sum()),
            others=frozenset(self._names[place][:2] for place in set(self._places[rows].tolist())),
        )

    @staticmethod
    def _groups(rows: Array, what: Array) -> list[Array]:
        """``rows`` in groups, in each of which ``what`` is the same; each in order."""
        if not len(rows):
            return []
        order = np.argsort(what, kind="stable")
        return np.split(rows[order], np.flatnonzero(np.diff(what[order])) + 1)

    @cached_property
    def _histories(self) -> Array:
        rows = [stratum.history for stratum in self.strata]
        return np.array(rows, np.int64).reshape(len(rows), len(self.runs))

    @cached_property
    def _cases(self) -> Array:
        return np.array([stratum.cases for stratum in self.strata], np.int64)

    @cached_property
    def _names(self) -> list[tuple[str, str, str]]:
        """Every family and hook kind that go together; and every program by itself, whose id is the third name."""
        return list(dict.fromkeys(map(_name, self.strata)))

    @cached_property
    def _places(self) -> Array:
        numbers = {name: number for number, name in enumerate(self._names)}
        return np.array([numbers[_name(stratum)] for stratum in self.strata], np.int64)

    @cached_property
    def _ran(self) -> Array:
        return np.array([result.outcome == RAN for result in self.results], bool)

    @cached_property
    def _ends(self) -> Array:
        """How each result ended, as a number that is the same for the same end."""
        numbers: dict[tuple[str, str, str], int] = {}
        ends = [(result.origin, result.outcome, result.reason) for result in self.results]
        return np.array([numbers.setdefault(end, len(numbers)) for end in ends], np.int64)


def _name(stratum: Stratum) -> tuple[str, str, str]:
    return stratum.family, stratum.kind, stratum.topology if stratum.family == PROGRAM else ""


def read_folder(folder: Path) -> Archive:
    """The records in ``folder``, one for each torch and device, and the files that are none.

    Raises `NoRecords` where there are no such files.
    """
    paths = record_files(folder)
    if not paths:
        raise NoRecords(folder)
    faults: list[Fault] = []
    return archive(_sound(paths, faults), faults)


def _sound(paths: Iterable[Path], faults: list[Fault]) -> Iterator[Folded]:
    """The records in the files ``paths``; what is wrong with the others is added to ``faults``."""
    seen: dict[tuple[str, str], str] = {}
    for path in paths:
        try:
            record = read_folded(path)
        except RecordError as fault:
            line = "" if fault.line is None else f"line {fault.line}: "
            faults.append(Fault(path.name, f"{line}{fault.cause}; {fault.remedy}"))
            continue
        key = record.header.build, record.header.device
        if key in seen:
            cause = f"{seen[key]} records torch {' '.join(key)} too, and is drawn"
            faults.append(Fault(path.name, f"{cause}; remove one of them, or run one with --label"))
            continue
        seen[key] = path.name
        yield record


def archive(records: Iterable[Folded], faults: Collection[Fault] = ()) -> Archive:
    """``records``, of which no two are of one torch and device, as an archive; each is needed only for a moment."""
    runs: list[Run] = []
    results: dict[Any, tuple[int, CaseResult]] = {}
    places: dict[tuple[str, str], dict[str, list[int]]] = {}
    networks: dict[str, Counterexample] = {}
    for record in records:
        # what is in the corpus goes before what exploration came upon too
        for alike in sorted(record.alike, key=lambda a: a.origin == CORPUS):
            number = _number(alike, results)
            for kind in alike.kinds:
                histories = places.setdefault((alike.family, kind), {})
                for topology in alike.topologies:
                    history = histories.setdefault(topology, [])
                    history += [-1] * (len(runs) + 1 - len(history))
                    history[len(runs)] = number
        for network in record.counterexamples:
            networks.setdefault(network.topology, network)
        runs.append(Run(record.header, record.footer))
    order = sorted(range(len(runs)), key=lambda i: (Version(runs[i].header.torch.version), runs[i].device))[::-1]
    size = sizes(networks.values())
    strata = [
        stratum for (family, kind), found in places.items() for stratum in _strata(family, kind, found, order, size)
    ]
    return Archive(
        runs=tuple(runs[i] for i in order),
        results=tuple(result for _, result in results.values()),
        strata=tuple(sorted(strata, key=lambda s: (size(s.topology), s.family, s.topology, s.kind))),
        networks=networks,
        faults=tuple(faults),
    )


def _number(alike: Alike, results: dict[Any, tuple[int, CaseResult]]) -> int:
    """The number of the result of ``alike``, the same for equal results."""
    counts = frozenset(alike.judged.items()), frozenset(alike.unjudged.items())
    key = alike.origin, alike.outcome, alike.reason, *counts, alike.deviations
    if key not in results:
        rest = alike.origin, alike.outcome, alike.reason, alike.judged, alike.deviations, alike.unjudged
        results[key] = len(results), CaseResult("", "", "", *rest)
    return results[key][0]


def _strata(family: str, kind: str, found: Mapping[str, list[int]], order: list[int], size: Size) -> Iterator[Stratum]:
    grouped: dict[tuple[int, ...], list[str]] = {}
    for topology, short in found.items():
        grouped.setdefault(tuple(short), []).append(topology)
    for history, topologies in grouped.items():
        padded = (*history, *[-1] * (len(order) - len(history)))
        smallest = min(topologies, key=lambda topology: (size(topology), topology))
        yield Stratum(family, kind, tuple(padded[i] for i in order), smallest, len(topologies))
