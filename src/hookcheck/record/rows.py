"""Cases as rows of numbers: what is the same for thousands of them is worked out once for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hookcheck.contract.verdict import PROGRAM, RAN, CaseResult
from hookcheck.topology.primitive import Array

Key = tuple[str, str, str]
"""Family, topology and hook kind of a case."""


@dataclass(frozen=True)
class Rows:
    """Rows of cases, those of the smallest networks first.

    A row stands for as many ``cases`` as had the same results as each other in every run; ``keys`` has the smallest of
    them. ``places`` are those of the row's name in ``names``. Runs say by number which of ``results`` a row had.
    """

    keys: Sequence[Key]
    names: Sequence[Key]
    places: Array
    cases: Array
    results: Sequence[CaseResult]
    _known: dict[tuple[int, ...], tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict, repr=False)

    @cached_property
    def ran(self) -> Array:
        """Which results are those of cases that ran."""
        return np.array([result.outcome == RAN for result in self.results], bool)

    @cached_property
    def ends(self) -> Array:
        """How each result ended, as a number that is the same for the same end; the last is that of no result."""
        numbers: dict[tuple[str, str, str], int] = {}
        ends = [(result.origin, result.outcome, result.reason) for result in self.results]
        return np.array([*(numbers.setdefault(end, len(numbers)) for end in ends), len(ends)], np.int64)

    def result(self, number: int) -> CaseResult | None:
        """The result of a number; None of -1."""
        return None if number < 0 else self.results[number]

    def groups(self, rows: Array, what: Array) -> Iterator[tuple[int, Array]]:
        """Each number that is in ``what``, with the ``rows`` for which it is that, the smallest first."""
        order = np.argsort(what, kind="stable")
        rows, what = rows[order], what[order]
        starts = np.flatnonzero(np.diff(what, prepend=-1))
        bounds = [*starts.tolist(), len(rows)]
        return ((number, rows[a:b]) for number, a, b in zip(what[starts].tolist(), bounds, bounds[1:]))

    def places_of(self, numbers: Array, rows: Array) -> list[tuple[int, ...]]:
        """The places of the names of ``rows``, each once, by the ``numbers`` (from 0, each is there) that they have."""
        there = np.bincount(numbers * len(self.names) + self.places[rows])
        groups, places = np.divmod(np.flatnonzero(there), len(self.names))
        bounds = [*np.flatnonzero(np.diff(groups, prepend=-1)).tolist(), len(groups)]
        all_places = tuple(places.tolist())
        return [all_places[start:end] for start, end in zip(bounds, bounds[1:])]

    def families_and_kinds(self, places: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The families and the hook kinds of the names at ``places``, in their order."""
        if places not in self._known:
            names = [self.names[place] for place in places]
            self._known[places] = tuple(sorted({n[0] for n in names})), tuple(sorted({n[1] for n in names}))
        return self._known[places]


def name_of(key: Key) -> Key:
    """Family and hook kind, and of a program its id: by these it is told whether a run should have a case."""
    family, topology, kind = key
    return family, kind, topology if family == PROGRAM else ""
