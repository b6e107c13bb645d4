"""What does a report say? Everything that is drawn, worked out once for HTML and Markdown alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Optional

from hookcheck.contract.clause import UNSPECIFIED
from hookcheck.contract.verdict import NOT_OFFERED, NOT_RUN, Cell
from hookcheck.record.model import PlannedClause, Record
from hookcheck.report.accounts import Account, accounts, fold
from hookcheck.report.columns import CellKey, Column, clauses, columns, families, kinds
from hookcheck.report.evidence import Evidence, anchors, evidence
from hookcheck.report.marks import ALARMING, MARKS, UNJUDGED, Mark, mark
from hookcheck.report.scopes import Scope, scopes

Ledger = Mapping[str, tuple[str, str]]
"""Why an entry of the ledger is there, and its upstream link, by the entry's id."""


@dataclass(frozen=True)
class Fault:
    """A file that could not be read as a record."""

    file: str
    text: str


@dataclass(frozen=True)
class Box:
    """One place of a matrix; without a mark the record has no such cell. ``link`` is an anchor, or empty."""

    mark: Mark | None
    note: str
    link: str


@dataclass(frozen=True)
class Row:
    """The families on which one clause is marked alike: for each column of the matrix, a box for each hook kind."""

    families: tuple[str, ...]
    boxes: tuple[tuple[Box, ...], ...]

    @property
    def marks(self) -> tuple[tuple[Mark | None, ...], ...]:
        """The marks of the boxes."""
        return tuple(tuple(box.mark for box in boxes) for boxes in self.boxes)


@dataclass(frozen=True)
class Section:
    """One clause on all families that any record judged it on; the rows that ask for most attention come first."""

    anchor: str
    clause: PlannedClause
    rows: tuple[Row, ...]

    @property
    def overall(self) -> tuple[tuple[tuple[tuple[Mark, int], ...], ...], ...]:
        """For each column, for each hook kind: the marks, with on how many families each is."""
        counted: list[list[Counter[Mark | None]]] = [[Counter() for _ in boxes] for boxes in self.rows[0].boxes]
        for row in self.rows:
            for counters, marks in zip(counted, row.marks):
                for counter, shown in zip(counters, marks):
                    counter[shown] += len(row.families)
        return tuple(tuple(tuple((m, c[m]) for m in MARKS if c[m]) for c in counters) for counters in counted)

    @property
    def notable(self) -> bool:
        """Whether something in it is not explained, or is judged otherwise by one record than by another."""
        across = [set(marks) - {None, *UNJUDGED} for row in self.rows for marks in zip(*row.marks)]
        return any(len(marks) > 1 or marks & {*ALARMING} for marks in across)


@dataclass(frozen=True)
class Matrix:
    """The clauses of one scope; ``left_out`` are the families that no record judged a clause on, with the reasons."""

    scope: Scope
    columns: tuple[Column, ...]
    sections: tuple[Section, ...]
    left_out: tuple[tuple[PlannedClause, tuple[str, ...], str], ...]


@dataclass(frozen=True)
class Page:
    """Everything that a report says."""

    columns: tuple[Column, ...]
    faults: tuple[Fault, ...]
    matrices: tuple[Matrix, ...]
    evidence: tuple[Evidence, ...]
    accounts: Mapping[Account, tuple[str, ...]]
    clauses: Mapping[str, PlannedClause]
    ledger: Ledger

    @property
    def unexplained(self) -> tuple[Evidence, ...]:
        """The evidence that no ledger entry explains."""
        return tuple(item for item in self.evidence if item.unexplained)

    @property
    def unspecified(self) -> tuple[PlannedClause, ...]:
        """The clauses that are shown and never judged."""
        return tuple(clause for clause in self.clauses.values() if clause.rank == UNSPECIFIED)

    @property
    def stopped(self) -> tuple[tuple[str, str], ...]:
        """The columns whose run was cut short, and why."""
        return tuple((c.name, c.record.footer.stopped) for c in self.columns if not c.record.footer.complete)


def page(records: Sequence[Record], faults: Sequence[Fault] = (), ledger: Ledger | None = None) -> Page:
    """The report on ``records``; ``faults`` are the files that are none."""
    shown = columns(records)
    collected = evidence(shown)
    folded = fold({column.name: accounts(column.record.cases) for column in shown})
    links = _links(shown, collected, folded)
    asked = {(clause, kind) for column in shown for clause, _, kind in column.cells}
    return Page(
        columns=shown,
        faults=tuple(faults),
        matrices=tuple(_matrix(n, s, shown, asked, links) for n, s in enumerate(scopes(kinds(shown)), start=1)),
        evidence=collected,
        accounts=folded,
        clauses=clauses(shown),
        ledger=ledger or {},
    )


def _links(
    shown: Sequence[Column], collected: Sequence[Evidence], folded: Mapping[Account, tuple[str, ...]]
) -> dict[tuple[str, CellKey], str]:
    """Where a cell's box leads: to what happened instead of a run, or else to the evidence that it deviates."""
    told = {
        (name, account.outcome, account.reason): f"account-{number}"
        for number, (account, names) in enumerate(folded.items(), start=1)
        for name in names
    }
    links = anchors(collected)
    for column in shown:
        for key, cell in column.cells.items():
            anchor = told.get((column.name, cell.verdict, cell.reason))
            if anchor is not None:
                links[column.name, key] = anchor
    return links


_Look = tuple[Optional[Mark], str]
"""The mark of a cell, and where it leads to."""


def _matrix(
    number: int,
    scope: Scope,
    shown: Sequence[Column],
    asked: Set[tuple[str, str]],
    links: Mapping[tuple[str, CellKey], str],
) -> Matrix:
    """The table numbered ``number``, that of ``scope``; ``asked`` holds each clause with the hook kinds it judges."""
    planned = {kind for _, kind in scope.kinds}
    across = tuple(column for column in shown if planned & set(column.record.header.plan.kinds))
    named = families(across)
    sections: list[Section] = []
    left_out: list[tuple[PlannedClause, tuple[str, ...], str]] = []
    for clause in clauses(across).values():
        if not any((clause.id, kind) in asked for kind in planned):
            continue
        alike: dict[tuple[tuple[_Look, ...], ...], list[str]] = {}
        unjudged: dict[str, list[str]] = {}
        for family in named:
            keys = [(clause.id, family, kind) for _, kind in scope.kinds]
            present = [column.cells[key] for column in across for key in keys if key in column.cells]
            if not present:
                continue
            if all(cell.verdict in (NOT_RUN, NOT_OFFERED) for cell in present):
                reasons = "; ".join(dict.fromkeys(cell.reason for cell in present))
                unjudged.setdefault(reasons, []).append(family)
                continue
            looks = tuple(tuple(_look(column, clause, key, links) for key in keys) for column in across)
            alike.setdefault(looks, []).append(family)
        if alike:
            rows = [_row(clause, scope, across, names, looks) for looks, names in alike.items()]
            rows.sort(key=lambda row: min(MARKS.index(m) for marks in row.marks for m in marks if m))
            sections.append(Section(f"clause-{number}-{len(sections) + 1}", clause, tuple(rows)))
        left_out += [(clause, tuple(names), reasons) for reasons, names in unjudged.items()]
    return Matrix(scope, across, tuple(sections), tuple(left_out))


def _look(column: Column, clause: PlannedClause, key: CellKey, links: Mapping[tuple[str, CellKey], str]) -> _Look:
    cell = column.cells.get(key)
    return (None if cell is None else mark(cell, clause.rank)), links.get((column.name, key), "")


def _row(
    clause: PlannedClause,
    scope: Scope,
    across: Sequence[Column],
    names: Sequence[str],
    looks: Sequence[Sequence[_Look]],
) -> Row:
    """The row of the families ``names``, whose cells all have these ``looks``."""

    def box(column: Column, kind: str, look: _Look) -> Box:
        cells = [cell for name in names if (cell := column.cells.get((clause.id, name, kind))) is not None]
        return Box(look[0], _note(cells), look[1])

    boxes = (
        tuple(box(column, kind, look) for (_, kind), look in zip(scope.kinds, of_column))
        for column, of_column in zip(across, looks)
    )
    return Row(tuple(names), tuple(boxes))


def _note(cells: Sequence[Cell]) -> str:
    """What there is to say of cells that carry one mark."""
    reasons = dict.fromkeys(cell.reason for cell in cells if cell.reason)
    if reasons or not cells:
        return "; ".join(reasons)
    counted: Counter[str] = Counter()
    for cell in cells:
        counted.update(cell.gaps)
    gaps = "".join(f", {count} × {gap}" for gap, count in counted.items())
    unjudged = sum(cell.unjudged for cell in cells)
    left_out = f", {unjudged} not judged" if unjudged else ""
    return f"{sum(cell.judged for cell in cells)} judged{left_out}{gaps}"
