"""All records together, case by case: which results each case had on every torch, of cases that went alike once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from packaging.version import Version

from hookcheck.contract.verdict import CaseResult
from hookcheck.errors import HookcheckError
from hookcheck.record.compare import Comparison, KnownChanges, Size, common_ranks, compare_rows, sizes
from hookcheck.record.errors import RecordError
from hookcheck.record.model import CORPUS, Alike, Counterexample, Folded, Footer, Header, PlannedClause
from hookcheck.record.reading import Part, read_folded, record_files
from hookcheck.record.rows import Key, Rows, name_of
from hookcheck.topology.primitive import Array


class NoRecords(HookcheckError):
    """A folder holds no record."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is where records were looked for."""
        super().__init__(f"there is no record in {folder}; run `pytest conformance/` first")


@dataclass(frozen=True)
class UnreadableFile:
    """A file that could not be read as a record."""

    file: str
    text: str


@dataclass(frozen=True)
class ArchivedRun:
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

    ``topology`` is the smallest of them by what the counterexamples tell, of others the first by id.
    """

    family: str
    kind: str
    topology: str
    cases: int


@dataclass(frozen=True)
class SeenResult:
    """A result that cases of one family and hook kind had; of programs, those of one program.

    ``cases`` says how many had it in each run; ``topology`` is the smallest of them, and ``place`` the newest run in
    which that one had it.
    """

    family: str
    kind: str
    result: CaseResult
    cases: tuple[int, ...]
    topology: str
    place: int


@dataclass(frozen=True)
class Archive:
    """Everything that records say; ``runs`` begin with the newest torch.

    A result stands for cases of many names, so its own family, topology and hook kind are empty. The ``strata`` of the
    smallest networks come first; ``histories`` has for each of them and each run a number of ``results``, or -1 where
    the record lacks the cases.
    """

    runs: tuple[ArchivedRun, ...]
    results: tuple[CaseResult, ...]
    strata: tuple[Stratum, ...]
    histories: Array = field(repr=False, compare=False)
    networks: Mapping[str, Counterexample]
    faults: tuple[UnreadableFile, ...] = ()
    _changes: dict[tuple[frozenset[Any], ...], KnownChanges] = field(default_factory=dict, repr=False)

    @cached_property
    def clauses(self) -> dict[str, PlannedClause]:
        """All clauses by id, as the newest torch's record words and orders them."""
        by_id: dict[str, PlannedClause] = {}
        for run in self.runs:
            for clause in run.header.plan.clauses:
                by_id.setdefault(clause.id, clause)
        return by_id

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

    def compare(self, before: int, after: int, varying: Collection[str] = ()) -> Comparison:
        """The difference between the runs at two places; ``varying`` as in `hookcheck.record.compare.compare`."""
        earlier, later = self.runs[before].header, self.runs[after].header
        ranks = common_ranks(earlier, later)
        key = frozenset(ranks.items()), frozenset(varying)
        known = self._changes.setdefault(key, KnownChanges(self.results, ranks, varying))
        was, now = self.histories[:, before], self.histories[:, after]
        return compare_rows(self._rows, was, now, earlier, later, known)

    @cached_property
    def sightings(self) -> tuple[SeenResult, ...]:
        """Every result with each family and hook kind that had it, in some run."""
        rows, places = np.nonzero(self.histories >= 0)
        results = self.histories[rows, places]
        # the smallest stratum first, and of its runs the newest
        pairings, firsts, groups = np.unique(
            self._rows.places[rows] * len(self.results) + results, return_index=True, return_inverse=True
        )
        counts = np.zeros((len(pairings), len(self.runs)), np.int64)
        np.add.at(counts, (groups, places), self._rows.cases[rows])
        entries = zip(rows[firsts].tolist(), places[firsts].tolist(), results[firsts].tolist(), counts.tolist())
        return tuple(
            SeenResult(s.family, s.kind, self.results[result], tuple(cases), s.topology, place)
            for s, place, result, cases in ((self.strata[row], *rest) for row, *rest in entries)
        )

    @cached_property
    def _rows(self) -> Rows:
        keys = [(stratum.family, stratum.topology, stratum.kind) for stratum in self.strata]
        names: dict[Key, int] = {}
        places = [names.setdefault(name_of(key), len(names)) for key in keys]
        cases = [stratum.cases for stratum in self.strata]
        return Rows(keys, tuple(names), np.array(places, np.int64), np.array(cases, np.int64), self.results)


def read_folder(folder: Path, say: Callable[[str], None] = lambda doing: None) -> Archive:
    """The records in ``folder``, one for each torch and device, and the files that are none; ``say`` is told of each.

    Raises `NoRecords` where there are no such files.
    """
    paths = record_files(folder)
    if not paths:
        raise NoRecords(folder)
    faults: list[UnreadableFile] = []
    return archive(_sound(paths, faults, say), faults)


def _sound(paths: Iterable[Path], faults: list[UnreadableFile], say: Callable[[str], None]) -> Iterator[Folded]:
    """The records in the files ``paths``; what is wrong with the others is added to ``faults``."""
    seen: dict[tuple[str, str], str] = {}
    known: dict[bytes, Part] = {}
    for path in paths:
        say(f"reading {path.name}")
        try:
            record = read_folded(path, known)
        except RecordError as fault:
            line = "" if fault.line is None else f"line {fault.line}: "
            faults.append(UnreadableFile(path.name, f"{line}{fault.cause}; {fault.remedy}"))
            continue
        key = record.header.build, record.header.device
        if key in seen:
            cause = f"{seen[key]} records torch {' '.join(key)} too, and is drawn"
            faults.append(UnreadableFile(path.name, f"{cause}; remove one of them, or run one with --label"))
            continue
        seen[key] = path.name
        yield record


def archive(records: Iterable[Folded], faults: Collection[UnreadableFile] = ()) -> Archive:
    """``records``, of which no two are of one torch and device, as an archive; each is needed only for a moment."""
    runs: list[ArchivedRun] = []
    columns: list[list[tuple[Array, int]]] = []
    numbers = _Numbers()
    networks: dict[str, Counterexample] = {}
    for record in records:
        # what is in the corpus goes before what exploration came upon too
        columns.append([numbers.of(alike) for alike in sorted(record.alike, key=lambda a: a.origin == CORPUS)])
        for network in record.counterexamples:
            networks.setdefault(network.topology, network)
        runs.append(ArchivedRun(record.header, record.footer))
    order = sorted(range(len(runs)), key=lambda i: (Version(runs[i].header.torch.version), runs[i].device))[::-1]
    histories = np.full((len(numbers.cases), len(runs)), -1, np.int64)
    for column, place in enumerate(order):
        cases, those = zip(*columns[place])
        histories[np.concatenate(cases), column] = np.repeat(those, [len(each) for each in cases])  # the last one stays
    strata, firsts = _strata(list(numbers.cases), histories, sizes(networks.values()))
    return Archive(
        runs=tuple(runs[i] for i in order),
        results=tuple(numbers.results.values()),
        strata=strata,
        histories=histories[firsts],
        networks=networks,
        faults=tuple(faults),
    )


class _Numbers:
    """A number for each case, by family, hook kind and topology, and for each result, the same for equal results."""

    def __init__(self) -> None:
        self.cases: dict[tuple[str, str, str], int] = {}
        self.results: dict[Any, CaseResult] = {}
        self._places: dict[Any, int] = {}
        self._known: dict[int, tuple[Alike, tuple[Array, int]]] = {}

    def of(self, alike: Alike) -> tuple[Array, int]:
        """The numbers of the cases of ``alike``, and that of their result; records share what came out alike."""
        if id(alike) not in self._known:
            names = ((alike.family, kind, topology) for kind in alike.kinds for topology in alike.topologies)
            cases = np.array([self.cases.setdefault(name, len(self.cases)) for name in names], np.int64)
            self._known[id(alike)] = alike, (cases, self._result(alike))
        return self._known[id(alike)][1]

    def _result(self, alike: Alike) -> int:
        counts = frozenset(alike.judged.items()), frozenset(alike.unjudged.items())
        key = alike.origin, alike.outcome, alike.reason, *counts, alike.deviations
        if key not in self.results:
            rest = alike.origin, alike.outcome, alike.reason, alike.judged, alike.deviations, alike.unjudged
            self._places[key] = len(self.results)
            self.results[key] = CaseResult("", "", "", *rest)
        return self._places[key]


def _strata(names: list[tuple[str, str, str]], histories: Array, size: Size) -> tuple[tuple[Stratum, ...], Array]:
    """The strata of the cases ``names``, in their order, and the number of the smallest case of each."""
    ranks = {name: rank for rank, name in enumerate(sorted({name[2] for name in names}, key=lambda t: (size(t), t)))}
    scopes: dict[tuple[str, str], int] = {}
    groups = np.array([scopes.setdefault(name[:2], len(scopes)) for name in names], np.int64)
    for column in histories.T:
        _, groups = np.unique(groups * (histories.max(initial=0) + 2) + column + 1, return_inverse=True)
    order = np.argsort(np.array([ranks[name[2]] for name in names], np.int64), kind="stable")
    _, firsts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    entries = [(names[first], count, first) for first, count in zip(order[firsts].tolist(), counts.tolist())]
    entries.sort(key=lambda item: (size(item[0][2]), item[0][0], item[0][2], item[0][1]))
    strata = tuple(Stratum(family, kind, topology, count) for (family, kind, topology), count, _ in entries)
    return strata, np.array([first for _, _, first in entries], np.int64)
