"""Why a promise deviates: each cause once, with where it shows and the smallest network that shows it.

A cause is an entry of the ledger or, where none explains the deviation, the way in which it deviates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hookcheck.contract.verdict import GAPS, RAN, Deviation
from hookcheck.record.model import Counterexample
from hookcheck.report.archive import Archive


@dataclass(frozen=True)
class Example:
    """A case that shows a cause, in words where any record has them; ``place`` is that of its run."""

    family: str
    kind: str
    place: int
    deviation: Deviation
    topology: str
    network: Counterexample | None


@dataclass(frozen=True)
class Cause:
    """Why ``clause`` deviates; ``ledger`` is the entry that explains it, or None.

    ``gaps`` are the ways in which it does, costliest first; ``cases`` counts them by the place of the run.
    """

    clause: str
    ledger: str | None
    gaps: tuple[str, ...]
    kinds: tuple[str, ...]
    families: tuple[str, ...]
    cases: Mapping[int, int]
    example: Example

    @property
    def name(self) -> str:
        """What the cause is known by, on its clause's page and in addresses."""
        return self.ledger or self.gaps[0]


@dataclass
class _Seen:
    gaps: set[str] = field(default_factory=set)
    kinds: dict[str, None] = field(default_factory=dict)
    families: dict[str, None] = field(default_factory=dict)
    cases: Counter[int] = field(default_factory=Counter)
    best: tuple[Any, ...] = ()
    example: tuple[str, str, int, Deviation, str] | None = None


def causes(archive: Archive) -> dict[str, tuple[Cause, ...]]:
    """The causes by clause: what nobody explains first, then what costs most."""
    by_key: dict[tuple[str, str | None, str], _Seen] = {}
    for sighting in archive.sightings:
        if sighting.result.outcome != RAN:
            continue
        topology, place = sighting.topology, sighting.place
        here = set()
        for deviation in sighting.result.deviations:
            key = deviation.clause, deviation.ledger, "" if deviation.ledger else deviation.gap
            seen = by_key.setdefault(key, _Seen())
            seen.gaps.add(deviation.gap)
            seen.kinds[sighting.kind] = seen.families[sighting.family] = None
            if key not in here:
                seen.cases.update({run: cases for run, cases in enumerate(sighting.cases) if cases})
                here.add(key)
            known = topology in archive.networks
            rank = not deviation.worded, not known, archive.size(topology), place, topology, GAPS.index(deviation.gap)
            if not seen.best or rank < seen.best:
                seen.best, seen.example = rank, (sighting.family, sighting.kind, place, deviation, topology)
    by_clause: dict[str, list[Cause]] = {}
    for (clause, ledger, _), seen in by_key.items():
        assert seen.example is not None
        gaps = tuple(sorted(seen.gaps, key=GAPS.index))
        example = Example(*seen.example, archive.networks.get(seen.example[-1]))
        cause = Cause(clause, ledger, gaps, tuple(seen.kinds), tuple(seen.families), dict(seen.cases), example)
        by_clause.setdefault(clause, []).append(cause)
    return {
        clause: tuple(sorted(those, key=lambda c: (c.ledger is not None, GAPS.index(c.gaps[0]), c.name)))
        for clause, those in by_clause.items()
    }
