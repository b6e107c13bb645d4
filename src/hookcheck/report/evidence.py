"""What shows that a clause deviates? For each hook kind and cause the smallest counterexample, once for all versions
in which it is the same.

A cause is an entry of the ledger or, where none explains the deviation, its gap. What is unexplained comes first, and
of it what costs its users most: silent wrong values before anything that raises.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hookcheck.contract.verdict import GAPS, CaseResult, Deviation
from hookcheck.record.lines import canonical
from hookcheck.report.columns import CellKey, Column


class Cause(NamedTuple):
    """Why a clause deviates with a hook kind; ``gap`` is empty where an entry of the ledger explains it."""

    clause: str
    kind: str
    ledger: str | None
    gap: str


class Example(NamedTuple):
    """A counterexample; ``source`` is empty where the record keeps none for the topology."""

    family: str
    topology: str
    deviations: tuple[Deviation, ...]
    source: str


@dataclass(frozen=True)
class Sighting:
    """In which columns a cause shows to the same extent; ``judged`` counts all subjects on these families."""

    columns: tuple[str, ...]
    families: tuple[str, ...]
    judged: int
    gaps: tuple[tuple[str, int], ...]

    @property
    def deviating(self) -> int:
        """How many deviations have this cause."""
        return sum(count for _, count in self.gaps)


@dataclass(frozen=True)
class Evidence:
    """One counterexample of one cause; ``gap`` is the costliest that the cause has."""

    anchor: str
    cause: Cause
    example: Example
    gap: str
    sightings: tuple[Sighting, ...]

    @property
    def unexplained(self) -> bool:
        """Whether no ledger entry explains this."""
        return self.cause.ledger is None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns that show this."""
        return tuple(name for sighting in self.sightings for name in sighting.columns)

    @property
    def families(self) -> tuple[str, ...]:
        """All families on which this shows, that of the example first."""
        seen = (name for sighting in self.sightings for name in sighting.families)
        return tuple(dict.fromkeys((self.example.family, *seen)))


def evidence(columns: Iterable[Column]) -> tuple[Evidence, ...]:
    """The evidence for everything that deviates in ``columns``, that which costs most first."""
    found: dict[tuple[Cause, Example], dict[_Extent, list[str]]] = {}
    for column in columns:
        known = {item.topology: (len(canonical(item.content)), item.source) for item in column.record.counterexamples}
        for cause, cases in _by_cause(column).items():
            sightings = found.setdefault((cause, _smallest(cases, known)), {})
            sightings.setdefault(_extent(column, cause, cases), []).append(column.name)
    anchors: Counter[str] = Counter()
    collected = [
        Evidence(
            anchor=_anchor(cause, anchors),
            cause=cause,
            example=example,
            gap=min((gaps[0][0] for _, _, gaps in sightings), key=GAPS.index),
            sightings=tuple(Sighting(tuple(names), *extent) for extent, names in sightings.items()),
        )
        for (cause, example), sightings in found.items()
    ]
    return tuple(sorted(collected, key=_rank))


def anchors(collected: Sequence[Evidence]) -> dict[tuple[str, CellKey], str]:
    """Where the evidence of a cell is, that which costs most: by the column's name and the cell's key."""
    return {
        (name, (item.cause.clause, family, item.cause.kind)): item.anchor
        for item in reversed(collected)
        for sighting in item.sightings
        for name in sighting.columns
        for family in sighting.families
    }


def _rank(item: Evidence) -> tuple[bool, int, str, str, str]:
    return not item.unexplained, GAPS.index(item.gap), item.cause.clause, item.example.family, item.cause.kind


_Cases = Sequence[tuple[CaseResult, tuple[Deviation, ...]]]
"""Cases with those of their deviations that have one cause."""

_Extent = tuple[tuple[str, ...], int, tuple[tuple[str, int], ...]]
"""The fields of a `Sighting` but for the columns."""


def _by_cause(column: Column) -> dict[Cause, list[tuple[CaseResult, tuple[Deviation, ...]]]]:
    found: dict[Cause, list[tuple[CaseResult, tuple[Deviation, ...]]]] = {}
    for case in column.record.cases:
        here: dict[Cause, list[Deviation]] = {}
        for deviation in case.deviations:
            if (deviation.clause, case.family, case.kind) in column.cells:
                gap = deviation.gap if deviation.ledger is None else ""
                here.setdefault(Cause(deviation.clause, case.kind, deviation.ledger, gap), []).append(deviation)
        for cause, deviations in here.items():
            found.setdefault(cause, []).append((case, tuple(deviations)))
    return found


def _smallest(cases: _Cases, known: Mapping[str, tuple[int, str]]) -> Example:
    """The case to show: one that is told, if any; then one whose size and source are ``known``; then the smallest."""

    def cost(item: tuple[CaseResult, tuple[Deviation, ...]]) -> tuple[bool, bool, int, str]:
        case, deviations = item
        told = all(deviation.told for deviation in deviations)
        return not told, case.topology not in known, known.get(case.topology, (0, ""))[0], case.topology

    case, deviations = min(cases, key=cost)
    return Example(case.family, case.topology, deviations, known.get(case.topology, (0, ""))[1])


def _extent(column: Column, cause: Cause, cases: _Cases) -> _Extent:
    families = tuple(dict.fromkeys(case.family for case, _ in cases))
    judged = sum(column.cells[cause.clause, family, cause.kind].judged for family in families)
    gaps = Counter(deviation.gap for _, deviations in cases for deviation in deviations)
    return families, judged, tuple(sorted(gaps.items(), key=lambda item: GAPS.index(item[0])))


def _anchor(cause: Cause, taken: Counter[str]) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"evidence {cause.clause} {cause.kind}")
    taken[name] += 1
    return f"{name}-{taken[name]}"
