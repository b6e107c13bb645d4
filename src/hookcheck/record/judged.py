"""Which clause judged hooks of which kind, in which context, on which class of tensors? And why not others?

Whether a clause finds anything to judge shows in a run alone, so it is counted in a record. A clause meets all that the
networks that it judged run inside of, and all classes of tensors that they have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from hookcheck.contract.verdict import RAN
from hookcheck.coverage.axes import Word, axes, contexts_of, tensors_of
from hookcheck.coverage.pairs import reason, together
from hookcheck.coverage.rules import POSSIBLE
from hookcheck.hooks.kinds import KINDS
from hookcheck.record.model import Folded
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology

CLAUSE, KIND, CONTEXT, TENSOR = "clause", "hook kind", "context", "tensor"

MET = (
    (CLAUSE, KIND), (CLAUSE, CONTEXT), (CLAUSE, TENSOR),
    (CLAUSE, KIND, CONTEXT), (CLAUSE, KIND, TENSOR), (CLAUSE, CONTEXT, TENSOR),
)  # fmt: skip
"""The axes that are looked at together."""

OTHERS = tuple(dict.fromkeys(names[1:] for names in MET))
"""Those of them that a network has, whatever judges it."""

OTHER_HOOKS = "the clause is not about such hooks"
NOT_RUN = "no network that has it ran"
NOTHING = "where it ran, the clause had nothing to judge"


@dataclass(frozen=True)
class JudgedTogether:
    """Words of two or three axes, in how many cases a clause judged what has all, and the reason where in none."""

    words: tuple[Word, ...]
    cases: int
    reason: str

    @property
    def row(self) -> Mapping[str, Any]:
        """As a line of JSON has it."""
        return {"choices": [f"{axis}: {word}" for axis, word in self.words], "cases": self.cases, "reason": self.reason}


def judged(record: Folded, corpus: Iterable[Topology]) -> Iterator[JudgedTogether]:
    """What each clause on networks judged in the cases of a record whose topologies are among ``corpus``."""
    having = {identify(topology): {CONTEXT: contexts_of(topology), TENSOR: tensors_of(topology)} for topology in corpus}
    ran: Counter[tuple[Word, ...]] = Counter()
    counts: Counter[tuple[Word, ...]] = Counter()
    for alike in record.alike:
        judging = {*alike.judged, *(deviation.clause for deviation in alike.deviations)}
        those = (having[each] for each in alike.topologies if each in having and alike.outcome == RAN)
        for topology, kind in product(those, alike.kinds):
            words = {CLAUSE: judging, KIND: (kind,), **topology}
            ran.update(met for names in OTHERS for met in together(names, words))
            counts.update(met for names in MET for met in together(names, words))
    clauses = {each.id: each.kinds for each in record.header.plan.clauses if not KINDS.keys().isdisjoint(each.kinds)}
    every = {CLAUSE: clauses, **{axis.name: axis.words for axis in axes()}}
    for met in (met for names in MET for met in together(names, every)):
        yield JudgedTogether(met, counts[met], "" if counts[met] else _why_not(dict(met), clauses, ran[met[1:]]))


def _why_not(met: Mapping[str, str], clauses: Mapping[str, Iterable[str]], ran: int) -> str:
    """Why a clause judged nothing that has those words, of which so many cases ran."""
    if met.get(KIND, next(iter(clauses[met[CLAUSE]]))) not in clauses[met[CLAUSE]]:
        return OTHER_HOOKS
    if ran:
        return NOTHING
    why = reason(*(word for word in met.items() if word[0] != CLAUSE))
    return NOT_RUN if why in POSSIBLE else why


def by_axes(rows: Iterable[JudgedTogether]) -> list[Mapping[str, Any]]:
    """A row for each axes that are looked at together: how many of their words a clause judged, and not."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        outcome = "judged" if row.cases else "nothing to judge" if row.reason == NOTHING else "ruled out"
        counts.setdefault(" × ".join(axis for axis, _ in row.words), Counter())[outcome] += 1
    return [{"axes": axes, **{column: f"{each[column]:,}" for column in BY_AXES[1:]}} for axes, each in counts.items()]


BY_AXES = ("axes", "judged", "nothing to judge", "ruled out")
"""The columns of `by_axes`."""


def by_clause(rows: Iterable[JudgedTogether]) -> list[Mapping[str, Any]]:
    """A row for each clause: of how many hook kinds, contexts and classes that it can meet it judged some."""
    counts: dict[str, dict[str, list[int]]] = {}
    for row in rows:
        (_, clause), (axis, _), *more = row.words
        if not more and row.reason in ("", NOTHING):
            counts.setdefault(clause, {}).setdefault(axis, []).append(row.cases)
    return [
        {"clause": clause, **{axis: f"{sum(map(bool, cases))}/{len(cases)}" for axis, cases in each.items()}}
        for clause, each in counts.items()
    ]


BY_CLAUSE = (CLAUSE, KIND, CONTEXT, TENSOR)
"""The columns of `by_clause`."""
