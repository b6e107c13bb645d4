"""The end of a run in at most 25 lines: the verdict first, then what is new, by cause, and what has no verdict.

What torch lacks and what nobody can foretell is said where nothing is new; where much is, that alone.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from hookcheck.contract.clause import UNSPECIFIED
from hookcheck.contract.verdict import (
    CONFORMS,
    COST_CLASSES,
    COSTS,
    CRASHED,
    GAPS,
    NOT_OFFERED,
    NOT_RUN,
    OUTCOMES,
    RAN,
    TIMED_OUT,
    Cell,
)
from hookcheck.record.model import CORPUS, Record
from hookcheck.report.accounts import Account, accounts, some
from hookcheck.report.bounds import statement
from hookcheck.report.prose import many
from hookcheck.report.signs import BY_COST

CAUSES = 3
"""Up to so many new causes have a sentence each; more are listed by how they deviate."""

GROUPS = 5
"""How many ways to deviate are listed, and of each how many clauses; the record and the report have them all."""

_GLUE = "\N{NO-BREAK SPACE}"
"""Between the words of a command, which stays on one line."""

UNJUDGED = 3
"""How many of the clauses are listed that cannot judge some of the cases."""


@dataclass(frozen=True)
class NewCause:
    """Deviations of one ``clause`` by one ``gap`` that no ledger entry explains, in so many ``cases``.

    ``topology`` is the first of the record that shows it; of a program it is the id of the clause.
    """

    clause: str
    gap: str
    cases: int
    families: tuple[str, ...]
    kinds: tuple[str, ...]
    topology: str


def new_causes(record: Record) -> tuple[NewCause, ...]:
    """What no ledger entry explains, costliest first and each cause once, however many cells it makes red.

    Clauses that are ``unspecified`` are shown elsewhere, and never judged.
    """
    unjudged = _unspecified(record)
    rows = [
        (deviation.clause, deviation.gap, case)
        for case in record.cases
        for deviation in case.deviations
        if deviation.ledger is None and deviation.clause not in unjudged
    ]
    rows.sort(key=lambda row: (GAPS.index(row[1]), row[0]))
    causes = []
    for (clause, gap), group in groupby(rows, key=lambda row: row[:2]):
        cases = {(c.family, c.topology, c.kind): c for _, _, c in group}
        families = tuple(dict.fromkeys(family for family, _, _ in cases))
        kinds = tuple(dict.fromkeys(kind for _, _, kind in cases))
        causes.append(NewCause(clause, gap, len(cases), families, kinds, next(iter(cases.values())).topology))
    return tuple(causes)


def judged_cells(record: Record) -> list[Cell]:
    """The verdicts of what is promised: all but those of ``unspecified`` clauses."""
    unjudged = _unspecified(record)
    return [cell for cell in record.cells() if cell.clause not in unjudged]


def explored_faults(record: Record) -> int:
    """How many families have a new topology that shows what is not known, or was lost: a run tells one of each."""
    unjudged = _unspecified(record)
    return len(
        {
            case.family
            for case in record.cases
            if case.origin != CORPUS
            and (
                case.outcome in (CRASHED, TIMED_OUT)
                or any(d.ledger is None and d.clause not in unjudged for d in case.deviations)
            )
        }
    )


def summary(record: Record, width: int) -> list[str]:
    """The lines to print, none longer than ``width`` characters."""
    return lines_of(_sentences(record), width)


def lines_of(sentences: Iterable[str], width: int) -> list[str]:
    """The lines of sentences, each with what goes on indented; what is to be copied stays whole."""
    return [
        line.replace(_GLUE, " ")
        for text in sentences
        for line in textwrap.wrap(
            text, max(width, 20), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    ]


def copied(command: str) -> str:
    """A command in a sentence: it is not broken over two lines."""
    return command.replace(" ", _GLUE)


def _sentences(record: Record) -> Iterator[str]:
    header, footer = record.header, record.footer
    cells = judged_cells(record)
    deviating = [cell for cell in cells if cell.deviating]
    new = sum(bool(cell.unexplained) for cell in deviating)
    entries = {d.ledger for case in record.cases for d in case.deviations if d.ledger}
    conforming = sum(cell.verdict == CONFORMS for cell in cells)
    silent = sum(cell.verdict in (NOT_RUN, NOT_OFFERED) for cell in cells)
    ended = sum(cell.verdict in (CRASHED, TIMED_OUT) for cell in cells)
    causes = new_causes(record)
    cut_short = "" if footer.complete else f"the run was cut short ({footer.stopped}); so far "
    yield (
        f"torch {header.torch.version} on {header.device}: {cut_short}{many(new, 'new deviation')} "
        f"({many(len(causes), 'cause')}), {many(len(deviating) - new, 'known deviation')} "
        f"({many(len(entries), 'cause')}), {many(conforming, 'cell')} conforming, {silent:,} with nothing to judge"
        + (f", {ended:,} crashed or timed out" if ended else "")
    )
    crowded = bool(causes[CAUSES:])
    yield from _grouped(causes) if crowded else map(_alone, causes)
    known = Counter(COSTS[d.gap] for case in record.cases for d in case.deviations if d.ledger)
    if known and not crowded:
        yield f"known deviations of cases, costliest first: {_costs(known)}"
    outcomes = ", ".join(f"{footer.counts[name]:,} {name}" for name in OUTCOMES)
    explored = many(footer.explored, "new topology", "new topologies")
    yield f"{many(footer.counts['planned'], 'case')}: {outcomes}; and {explored}"
    if (said := statement(footer.explored, explored_faults(record))) and not crowded:
        yield said
    unjudged_by = Counter(clause for case in record.cases for clause in case.unjudged)
    if unjudged_by and not causes:
        most = ", ".join(f"{id} in {many(cases, 'case')}" for id, cases in unjudged_by.most_common(UNJUDGED))
        more = f", and {many(len(unjudged_by) - UNJUDGED, 'more clause')}" if len(unjudged_by) > UNJUDGED else ""
        yield f"not judged, since nobody can foretell what is right: {most}{more}"
    collected = accounts(record.cases)
    named = (CRASHED, TIMED_OUT) if crowded else (NOT_RUN, CRASHED, TIMED_OUT) if causes else OUTCOMES
    for outcome in (name for name in OUTCOMES if name != RAN and name in named):
        reasons = sorted((a for a in collected if a.outcome == outcome), key=lambda account: -account.cases)
        if reasons:
            yield _reasons(outcome, reasons)


def _costs(counts: Mapping[str, int]) -> str:
    """How many have each cost, the costliest first."""
    return ", ".join(
        f"{counts[cost]:,} {BY_COST[cost].counted or BY_COST[cost].word}" for cost in COST_CLASSES if cost in counts
    )


def _alone(cause: NewCause) -> str:
    """A new cause in a sentence."""
    return (
        f"new: {cause.clause}, {cause.gap}, in {many(cause.cases, 'case')} "
        f"({some(cause.families, 'families', 2)}; {some(cause.kinds, 'hook kinds', 2)}); "
        f"for one see: {copied(f'hookcheck explain {cause.topology}')}"
    )


def _grouped(causes: tuple[NewCause, ...]) -> Iterator[str]:
    """Many new causes, those that deviate alike in one sentence, and where to look at the one that most cases show."""
    groups = [list(group) for _, group in groupby(causes, key=lambda cause: cause.gap)]
    for group in groups[:GROUPS]:
        group.sort(key=lambda cause: -cause.cases)
        (first, *others), more = group[:GROUPS], len(group) - GROUPS
        named = [f"{first.clause} in {many(first.cases, 'case')}", *(f"{c.clause} in {c.cases:,}" for c in others)]
        yield f"new, {first.gap}: {', '.join(named)}" + (f", and {many(more, 'more clause')}" if more > 0 else "")
    if rest := [cause for group in groups[GROUPS:] for cause in group]:
        costs = _costs(Counter(COSTS[cause.gap] for cause in rest))
        everything = copied("hookcheck summary RECORD --format json")
        yield f"and {many(len(rest), 'more new cause')} ({costs}); all: {everything}"
    widest = max(causes, key=lambda cause: cause.cases)
    one = copied(f"hookcheck explain {widest.topology}")
    yield f"most cases show {widest.clause}, {widest.gap}; for one see: {one}"


def _unspecified(record: Record) -> frozenset[str]:
    return frozenset(clause.id for clause in record.header.plan.clauses if clause.rank == UNSPECIFIED)


def _reasons(outcome: str, reasons: list[Account]) -> str:
    first = f"{outcome}: {reasons[0].reason} ({many(reasons[0].cases, 'case')})"
    others = reasons[1:]
    if not others:
        return first
    cases = many(sum(account.cases for account in others), "case")
    return f"{first}, and {many(len(others), 'more reason')} ({cases})"
