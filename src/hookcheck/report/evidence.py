"""What shows that a cell deviates? Its smallest counterexample, once for all versions in which it is the same.

Evidence that no ledger entry explains comes first, and of it what costs its users most: silent wrong values before
anything that raises.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hookcheck.contract.verdict import GAPS, CaseResult, Cell, Deviation
from hookcheck.record.lines import canonical
from hookcheck.report.columns import CellKey, Column

_Key = tuple[str, str, str, str, tuple[Deviation, ...], str]


@dataclass(frozen=True)
class Sighting:
    """In which columns a cell deviates to the same extent."""

    columns: tuple[str, ...]
    judged: int
    deviating: int
    unexplained: int
    gaps: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Evidence:
    """One counterexample of one cell; ``source`` is empty where the record keeps none for the topology.

    ``gap`` is the costliest one of the cell, of what is unexplained where anything is.
    """

    anchor: str
    clause: str
    family: str
    kind: str
    topology: str
    deviations: tuple[Deviation, ...]
    source: str
    gap: str
    sightings: tuple[Sighting, ...]

    @property
    def unexplained(self) -> bool:
        """Whether the cell has deviations that no ledger entry explains."""
        return any(sighting.unexplained for sighting in self.sightings)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns that show this."""
        return tuple(name for sighting in self.sightings for name in sighting.columns)

    @property
    def ledger(self) -> tuple[str, ...]:
        """The ids of the ledger's entries that explain the deviations shown."""
        return tuple(dict.fromkeys(entry for d in self.deviations if (entry := d.ledger) is not None))


def evidence(columns: Iterable[Column]) -> tuple[Evidence, ...]:
    """The evidence for all deviating cells of ``columns``, that which costs most first."""
    found: dict[_Key, list[tuple[str, Cell]]] = {}
    gaps: dict[_Key, list[str]] = {}
    for column in columns:
        deviating = _deviating_cases(column)
        sizes = {item.topology: len(canonical(item.content)) for item in column.record.counterexamples}
        sources = {item.topology: item.source for item in column.record.counterexamples}
        for cell_key, cases in deviating.items():
            shown = _smallest(cases, cell_key[0], sizes)
            key = (*cell_key, shown.topology, _of(cell_key[0], shown), sources.get(shown.topology, ""))
            found.setdefault(key, []).append((column.name, column.cells[cell_key]))
            gaps.setdefault(key, []).append(_costliest(cases, cell_key[0]))
    anchors: Counter[str] = Counter()
    collected = [
        Evidence(_anchor(key, anchors), *key, gap=min(gaps[key], key=GAPS.index), sightings=_sightings(found[key]))
        for key in found
    ]
    return tuple(sorted(collected, key=lambda item: (not item.unexplained, GAPS.index(item.gap), *_cell_key(item))))


def anchors(collected: Iterable[Evidence]) -> dict[tuple[str, CellKey], str]:
    """Where the evidence of a cell is: by the column's name and the cell's key."""
    return {(name, _cell_key(item)): item.anchor for item in collected for name in item.columns}


def _cell_key(item: Evidence) -> CellKey:
    return item.clause, item.family, item.kind


def _deviating_cases(column: Column) -> dict[CellKey, list[CaseResult]]:
    found: dict[CellKey, list[CaseResult]] = {}
    for case in column.record.cases:
        for clause in dict.fromkeys(deviation.clause for deviation in case.deviations):
            key = (clause, case.family, case.kind)
            if key in column.cells:
                found.setdefault(key, []).append(case)
    return found


def _of(clause: str, case: CaseResult) -> tuple[Deviation, ...]:
    return tuple(deviation for deviation in case.deviations if deviation.clause == clause)


def _smallest(cases: Sequence[CaseResult], clause: str, sizes: dict[str, int]) -> CaseResult:
    """The case to show: one that is not explained, if any; then one that is told, and whose source is known; then the
    smallest."""

    def cost(case: CaseResult) -> tuple[bool, bool, bool, int, str]:
        deviations = _of(clause, case)
        explained = all(deviation.ledger is not None for deviation in deviations)
        told = all(deviation.told for deviation in deviations)
        return explained, not told, case.topology not in sizes, sizes.get(case.topology, 0), case.topology

    return min(cases, key=cost)


def _costliest(cases: Sequence[CaseResult], clause: str) -> str:
    deviations = [deviation for case in cases for deviation in _of(clause, case)]
    return min(deviations, key=lambda deviation: (deviation.ledger is not None, GAPS.index(deviation.gap))).gap


def _sightings(seen: Sequence[tuple[str, Cell]]) -> tuple[Sighting, ...]:
    folded: dict[tuple[int, int, int, tuple[tuple[str, int], ...]], list[str]] = {}
    for name, cell in seen:
        gaps = tuple(sorted(cell.gaps.items(), key=lambda item: GAPS.index(item[0])))
        folded.setdefault((cell.judged, cell.deviating, cell.unexplained, gaps), []).append(name)
    return tuple(Sighting(tuple(names), *counts) for counts, names in folded.items())


def _anchor(key: _Key, taken: Counter[str]) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "-", "evidence " + " ".join(key[:3]))
    taken[name] += 1
    return f"{name}-{taken[name]}"
