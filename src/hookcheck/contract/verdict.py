"""What does one run say? Results of cases, and the verdict of every cell that they add up to.

A *case* is one topology run with one hook kind on one device. A *cell* is clause × family × hook kind; its verdict is
derived from the cases, never stored beside them, so the two cannot disagree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hookcheck.contract.site import Relation, Site

RAN, NOT_OFFERED, NOT_RUN, CRASHED, TIMED_OUT = "ran", "not offered", "not run", "crashed", "timed out"
OUTCOMES = (RAN, NOT_OFFERED, NOT_RUN, CRASHED, TIMED_OUT)
"""What became of a case. All but ``ran`` are *accounted for* with a reason; none of them counts as passed."""

LOST = CRASHED, TIMED_OUT
"""What became of a case that took the process along."""

CONFORMS, DEVIATES = "conforms", "deviates"
VERDICTS = (CRASHED, TIMED_OUT, DEVIATES, NOT_RUN, CONFORMS, NOT_OFFERED)
"""Verdicts of a cell, the one that outranks the others first."""

PROGRAM = "program"
"""The family of all programs; the result of a program has its id in the place of the topology's."""

GAPS = (
    "wrong values",
    "parameter gradients mixed in",
    "wrong slots",
    "wrong shape",
    "None instead of a gradient",
    "a gradient instead of None",
    "missing entries",
    "extra entries",
    "not fired",
    "fired too often",
    "wrong order",
    "wrong arguments",
    "kept alive",
    "other rounding",
    "crashed",
    "timed out",
    "not raised",
    "raised",
    "new warning",
    "no warning",
)
"""How an observation can differ from what is expected, costliest first: silent, then loud."""

_SILENT = "silent"

COSTS: Mapping[str, str] = {
    "wrong values": _SILENT,
    "parameter gradients mixed in": _SILENT,
    "wrong slots": _SILENT,
    "wrong shape": _SILENT,
    "None instead of a gradient": _SILENT,
    "a gradient instead of None": _SILENT,
    "missing entries": _SILENT,
    "extra entries": _SILENT,
    "not fired": "not called",
    "fired too often": "called otherwise",
    "wrong order": "called otherwise",
    "wrong arguments": "called otherwise",
    "crashed": "exception",
    "timed out": "exception",
    "not raised": "exception",
    "raised": "exception",
    "new warning": "warning",
    "no warning": "warning",
    "kept alive": "memory",
    "other rounding": "rounding",
}
"""What each gap costs the user of a hook, costliest first: a wrong value that nobody is told of, to other rounding."""

COST_CLASSES = tuple(dict.fromkeys(COSTS.values()))
"""The classes of `COSTS`, costliest first."""


@dataclass(frozen=True)
class Deviation:
    """One place where torch and the contract disagree.

    ``subject`` is the call concerned (``"net.block.fc#1"``: the second call of that module) or ``"run"``. ``gap`` is
    one of `GAPS`. ``expected`` and ``observed`` are texts for people; both are empty where a deviation that the ledger
    explains is not among the evidence for it (see `hookcheck.contract.evidence`). ``ledger`` is the id of the entry
    that explains the deviation, or None where it is not known. ``relation`` does not hold at ``site``, as the finding
    says; both are None where a set of outcomes is declared, and in records that know of neither.
    """

    clause: str
    subject: str
    gap: str
    expected: str = ""
    observed: str = ""
    ledger: str | None = None
    relation: Relation | None = None
    site: Site | None = None

    @property
    def worded(self) -> bool:
        """Whether it is put into words."""
        return bool(self.expected or self.observed)


@dataclass(frozen=True)
class CaseResult:
    """What became of one case.

    ``judged`` says for each clause how many subjects (calls, or the run) it had a say on; a clause that is absent
    there had nothing to judge. ``unjudged`` counts those that a clause speaks of where it cannot be foretold what must
    be seen. ``origin`` is ``"corpus"`` or ``"exploration"``; ``reason`` is empty for one that ran.
    """

    family: str
    topology: str
    kind: str
    origin: str
    outcome: str
    reason: str = ""
    judged: Mapping[str, int] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()
    unjudged: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """The verdict on one clause for one family and hook kind.

    ``judged``, ``unjudged`` and ``deviating`` count subjects; ``gaps`` counts deviations by gap; ``unexplained`` counts
    those without a ledger entry; ``topologies`` are the ids of deviating topologies in the order of the record.
    """

    clause: str
    family: str
    kind: str
    verdict: str
    reason: str
    judged: int
    deviating: int
    unexplained: int
    gaps: Mapping[str, int]
    topologies: tuple[str, ...]
    unjudged: int = 0


def cells(
    results: Iterable[CaseResult], clauses: Iterable[str], applies: Mapping[str, Iterable[str]] | None = None
) -> list[Cell]:
    """The cells that ``results`` add up to, for every clause of ``clauses``.

    ``applies`` gives, for a clause, the hook kinds that it speaks of (all of them where the clause is missing there);
    cells of other kinds do not exist.
    """
    grouped: dict[tuple[str, str, str], list[CaseResult]] = {}
    for result in results:
        program = result.topology if result.family == PROGRAM else ""
        grouped.setdefault((result.family, result.kind, program), []).append(result)
    sums = {key: _added_up(group) for key, group in grouped.items()}
    spoken = {clause: frozenset(kinds) for clause, kinds in (applies or {}).items()}
    return [
        _cell(clause, family, kind, sums[family, kind, program])
        for clause in clauses
        for family, kind, program in grouped
        if program in ("", clause) and (clause not in spoken or kind in spoken[clause])
    ]


@dataclass(frozen=True)
class _CellSum:
    """What the results of one family and hook kind, or of one program, add up to."""

    reasons: Mapping[str, str]
    judged: Mapping[str, int]
    unjudged: Mapping[str, int]
    deviations: Mapping[str, list[tuple[str, Deviation]]]


def _added_up(results: Iterable[CaseResult]) -> _CellSum:
    reasons: dict[str, str] = {}
    judged: Counter[str] = Counter()
    unjudged: Counter[str] = Counter()
    deviations: dict[str, list[tuple[str, Deviation]]] = {}
    for result in results:
        reasons.setdefault(result.outcome, result.reason)
        judged.update(result.judged)
        unjudged.update(result.unjudged)
        for deviation in result.deviations:
            deviations.setdefault(deviation.clause, []).append((result.topology, deviation))
    return _CellSum(reasons, judged, unjudged, deviations)


def _cell(clause: str, family: str, kind: str, total: _CellSum) -> Cell:
    judged, deviations = total.judged.get(clause, 0), total.deviations.get(clause, [])
    unjudged = total.unjudged.get(clause, 0)
    spoken = bool(judged or unjudged or deviations)
    # a case that was lost would have judged what the others judge
    reasons = {o: reason for o, reason in total.reasons.items() if spoken or RAN not in total.reasons or o not in LOST}
    verdict, reason = _verdict(reasons, judged, len(deviations), unjudged)
    return Cell(
        clause=clause,
        family=family,
        kind=kind,
        verdict=verdict,
        reason=reason,
        judged=judged,
        deviating=len(deviations),
        unexplained=sum(deviation.ledger is None for _, deviation in deviations),
        gaps=dict(Counter(deviation.gap for _, deviation in deviations)),
        topologies=tuple(dict.fromkeys(topology for topology, _ in deviations)),
        unjudged=unjudged,
    )


def _verdict(reasons: Mapping[str, str], judged: int, deviating: int, unjudged: int) -> tuple[str, str]:
    """The verdict and its reason; ``reasons`` gives the first reason of every outcome that there was."""
    for outcome in LOST:
        if outcome in reasons:
            return outcome, reasons[outcome]
    if deviating:
        return DEVIATES, ""
    if NOT_RUN in reasons:  # a cell that was cut short has not passed
        return NOT_RUN, reasons[NOT_RUN]
    if judged:
        return CONFORMS, ""
    if NOT_OFFERED in reasons:
        return NOT_OFFERED, reasons[NOT_OFFERED]
    if unjudged:
        return NOT_RUN, "not judged: nobody can foretell what is right"
    return NOT_RUN, "no case of this family has anything that the clause speaks of"
