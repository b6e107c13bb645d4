"""How each promise stands on each torch with each hook kind: over all networks, from the cases of all records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hookcheck.contract.clause import CLAIM, UNSPECIFIED
from hookcheck.contract.verdict import COSTS, GAPS, LOST, NOT_OFFERED, PROGRAM, RAN, CaseResult, Deviation
from hookcheck.hooks.kinds import KINDS
from hookcheck.record.model import PlannedClause
from hookcheck.report.archive import Archive, SeenResult
from hookcheck.report.signs import (
    ABSENT,
    BY_COST,
    CRASH,
    HOLDS,
    PARTLY,
    REFUTED,
    SHOWN,
    SIGNS,
    SILENCE,
    UNRUN,
    WRONG,
    Sign,
)

ALWAYS, SOMETIMES = "always", "sometimes"


@dataclass
class KindStanding:
    """What the cases of one clause, hook kind and run add up to.

    ``cases`` are those that the clause had its say on, ``subjects`` the calls, firings or facts in them; ``wrong`` and
    ``wrong_subjects`` are those of them that deviate. ``gaps`` counts the cases that deviate so, ``new`` those that no
    entry of the ledger explains, ``outcomes`` the cases of the hook kind that did not run, with the reason, and
    ``unjudged`` those of which nobody can foretell what is right.
    """

    cases: int = 0
    subjects: int = 0
    wrong: int = 0
    wrong_subjects: int = 0
    new: int = 0
    unjudged: int = 0
    gaps: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def gap(self) -> str:
        """The costliest way in which it deviates; empty where it does not."""
        return min(self.gaps, key=GAPS.index, default="")


@dataclass(frozen=True)
class ShownVerdict:
    """What is shown of a standing; ``extent`` says whether every network deviates, and is empty of a program."""

    sign: Sign
    extent: str = ""
    new: bool = False


@dataclass(frozen=True)
class Span:
    """Neighbouring runs with one verdict; places in `Archive.runs`, the newest first."""

    verdict: ShownVerdict
    places: tuple[int, ...]


def standings(archive: Archive) -> dict[tuple[str, str], list[KindStanding]]:
    """How everything stands, for each run of ``archive`` in its order."""
    by_cell: dict[tuple[str, str], list[KindStanding]] = {
        (clause.id, kind): [KindStanding() for _ in archive.runs]
        for clause in archive.clauses.values()
        for kind in clause.kinds
        if kind in archive.kinds
    }
    of_kind: dict[str, list[str]] = {}
    for clause, kind in by_cell:
        of_kind.setdefault(kind, []).append(clause)
    silent: Counter[tuple[str, str, str, str, str, int]] = Counter()
    ran: dict[str, list[SeenResult]] = {}
    spoken: dict[tuple[str, str], set[str]] = {}
    for seen in archive.sightings:
        if seen.result.outcome == RAN:
            ran.setdefault(seen.kind, []).append(seen)
            spoken.setdefault((seen.family, seen.kind), set()).update(seen.result.judged, seen.result.unjudged)
        else:
            family = seen.family if seen.result.outcome in LOST else ""
            program = seen.topology if seen.family == PROGRAM else ""
            for place, cases in enumerate(seen.cases):
                if cases:
                    silent[seen.kind, family, program, seen.result.outcome, seen.result.reason, place] += cases
    for kind, sightings in ran.items():
        summed = _Sums(sightings)
        for clause in of_kind.get(kind, ()):
            summed.add_to(by_cell[clause, kind], clause)
    for (kind, family, program, outcome, reason, place), cases in silent.items():
        # a case that was lost would have judged what the others of its family and hook kind judge
        asked = [program] if program else spoken.get((family, kind), of_kind.get(kind, ()))
        for clause in asked:
            if (clause, kind) in by_cell:
                by_cell[clause, kind][place].outcomes[outcome, reason] += cases
    return by_cell


class _Sums:
    """What the sightings of one hook kind add up to: how a clause stands is no matter of the family.

    Each result is looked at once: what it says of a clause is a row (its number, and what it counts), and the rows of a
    clause are multiplied with how many cases had the results in each run.
    """

    def __init__(self, sightings: Sequence[SeenResult]) -> None:
        results: dict[int, tuple[int, CaseResult]] = {}
        for seen in sightings:
            results.setdefault(id(seen.result), (len(results), seen.result))
        self._cases = np.zeros((len(results), len(sightings[0].cases)), np.int64)
        np.add.at(self._cases, [results[id(seen.result)][0] for seen in sightings], [seen.cases for seen in sightings])
        self._judged: dict[str, list[tuple[int, ...]]] = {}
        self._unjudged: dict[str, list[tuple[int, ...]]] = {}
        self._deviating: dict[str, list[tuple[int, ...]]] = {}
        self._gaps: dict[str, dict[str, list[tuple[int, ...]]]] = {}
        for number, result in results.values():
            for clause, count in result.judged.items():
                self._judged.setdefault(clause, []).append((number, 1, count))
            for clause in result.unjudged:
                self._unjudged.setdefault(clause, []).append((number, 1))
            self._add_deviations(number, result)

    def _add_deviations(self, number: int, result: CaseResult) -> None:
        deviating: dict[str, list[Deviation]] = {}
        for deviation in result.deviations:
            deviating.setdefault(deviation.clause, []).append(deviation)
        for clause, deviations in deviating.items():
            subjects = len({deviation.subject for deviation in deviations})
            new = any(deviation.ledger is None for deviation in deviations)
            self._deviating.setdefault(clause, []).append((number, 1, subjects, new))
            gaps = self._gaps.setdefault(clause, {})
            for gap in {deviation.gap for deviation in deviations}:
                gaps.setdefault(gap, []).append((number, 1))

    def _by_run(self, rows: Sequence[tuple[int, ...]], columns: int) -> list[list[int]]:
        """For each run the sums of the columns of ``rows`` after the number of the result."""
        if not rows:
            return [[0] * columns] * self._cases.shape[1]
        table = np.array(rows, np.int64)
        summed: list[list[int]] = (self._cases[table[:, 0]].T @ table[:, 1:]).tolist()
        return summed

    def add_to(self, standings: Sequence[KindStanding], clause: str) -> None:
        """Adds what is said of ``clause``; ``standings`` are those of each run."""
        judged = self._by_run(self._judged.get(clause, ()), 2)
        unjudged = self._by_run(self._unjudged.get(clause, ()), 1)
        deviating = self._by_run(self._deviating.get(clause, ()), 3)
        gaps = {gap: self._by_run(rows, 1) for gap, rows in self._gaps.get(clause, {}).items()}
        for place, standing in enumerate(standings):
            standing.cases, standing.subjects = judged[place]
            (standing.unjudged,) = unjudged[place]
            standing.wrong, standing.wrong_subjects, standing.new = deviating[place]
            standing.gaps.update({gap: summed[place][0] for gap, summed in gaps.items() if summed[place][0]})


def verdict(clause: PlannedClause, standing: KindStanding) -> ShownVerdict:
    """What to show of ``standing``, which is that of ``clause``."""
    if any(outcome in LOST for outcome, _ in standing.outcomes):
        return ShownVerdict(CRASH)
    if clause.rank == UNSPECIFIED and (standing.cases or standing.wrong):
        return ShownVerdict(SHOWN)
    if standing.wrong and clause.rank == CLAIM:
        return ShownVerdict(PARTLY if standing.wrong_subjects < standing.subjects else REFUTED, "", standing.new > 0)
    if standing.wrong:
        extent = "" if is_program(clause) else ALWAYS if standing.wrong == standing.cases else SOMETIMES
        return ShownVerdict(BY_COST[COSTS[standing.gap]], extent, standing.new > 0)
    if standing.cases:
        return ShownVerdict(HOLDS)
    return ShownVerdict(ABSENT if any(outcome == NOT_OFFERED for outcome, _ in standing.outcomes) else UNRUN)


def is_program(clause: PlannedClause) -> bool:
    """Whether it is a program, whose chapter stands for the hook kind."""
    return not any(kind in KINDS for kind in clause.kinds)


def spans(verdicts: Iterable[tuple[int, ShownVerdict]]) -> tuple[Span, ...]:
    """Neighbours with one verdict together; ``verdicts`` are given with the places of their runs."""
    joined: list[Span] = []
    for place, shown in verdicts:
        if joined and joined[-1].verdict == shown:
            joined[-1] = Span(shown, (*joined[-1].places, place))
        else:
            joined.append(Span(shown, (place,)))
    return tuple(joined)


def worst(verdicts: Iterable[ShownVerdict]) -> ShownVerdict:
    """Of several verdicts the one that asks for most attention; of silence where there is none."""
    return min(verdicts, key=lambda shown: (SIGNS.index(shown.sign), not shown.new), default=ShownVerdict(UNRUN))


def is_wrong(shown: ShownVerdict) -> bool:
    """Whether it is not as it is promised or claimed."""
    return shown.sign in WRONG


def says_something(shown: ShownVerdict) -> bool:
    """Whether anything was judged."""
    return shown.sign not in SILENCE
