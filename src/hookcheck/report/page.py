"""What does a report say? Everything that is drawn, worked out once for HTML and Markdown alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hookcheck.contract.clause import UNSPECIFIED
from hookcheck.contract.verdict import NOT_OFFERED, NOT_RUN, Cell
from hookcheck.record.model import PlannedClause, Record
from hookcheck.report.accounts import Account, accounts, fold
from hookcheck.report.columns import CellKey, Column, clauses, columns, families, kinds
from hookcheck.report.evidence import Evidence, anchors, evidence
from hookcheck.report.marks import Mark, mark
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
    """One clause on one family: for each column of the matrix, a box for each hook kind."""

    family: str
    boxes: tuple[tuple[Box, ...], ...]


@dataclass(frozen=True)
class Matrix:
    """The rows of one scope by clause; ``left_out`` are the rows that no record judged, with the reasons."""

    scope: Scope
    columns: tuple[Column, ...]
    rows: tuple[tuple[PlannedClause, tuple[Row, ...]], ...]
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
    return Page(
        columns=shown,
        faults=tuple(faults),
        matrices=tuple(_matrix(scope, shown, links) for scope in scopes(kinds(shown))),
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
        (name, account.outcome, account.kind, account.reason): f"account-{number}"
        for number, (account, names) in enumerate(folded.items(), start=1)
        for name in names
    }
    links = anchors(collected)
    for column in shown:
        for key, cell in column.cells.items():
            anchor = told.get((column.name, cell.verdict, cell.kind, cell.reason))
            if anchor is not None:
                links[column.name, key] = anchor
    return links


def _matrix(scope: Scope, shown: Sequence[Column], links: Mapping[tuple[str, CellKey], str]) -> Matrix:
    planned = {kind for _, kind in scope.kinds}
    across = tuple(column for column in shown if planned & set(column.record.header.plan.kinds))
    rows: list[tuple[PlannedClause, tuple[Row, ...]]] = []
    left_out: list[tuple[PlannedClause, tuple[str, ...], str]] = []
    for clause in clauses(across).values():
        kept: list[Row] = []
        unjudged: dict[str, list[str]] = {}
        for family in families(across):
            keys = [(clause.id, family, kind) for _, kind in scope.kinds]
            present = [column.cells[key] for column in across for key in keys if key in column.cells]
            if not present:
                continue
            if all(cell.verdict in (NOT_RUN, NOT_OFFERED) for cell in present):
                reasons = "; ".join(dict.fromkeys(cell.reason for cell in present))
                unjudged.setdefault(reasons, []).append(family)
                continue
            boxes = tuple(tuple(_box(column, clause, key, links) for key in keys) for column in across)
            kept.append(Row(family, boxes))
        if kept:
            rows.append((clause, tuple(kept)))
        left_out += [(clause, tuple(names), reasons) for reasons, names in unjudged.items()]
    return Matrix(scope, across, tuple(rows), tuple(left_out))


def _box(column: Column, clause: PlannedClause, key: CellKey, links: Mapping[tuple[str, CellKey], str]) -> Box:
    cell = column.cells.get(key)
    if cell is None:
        return Box(None, "", "")
    return Box(mark(cell, clause.rank), _note(cell), links.get((column.name, key), ""))


def _note(cell: Cell) -> str:
    if cell.reason:
        return cell.reason
    gaps = "".join(f", {count} × {gap}" for gap, count in cell.gaps.items())
    return f"{cell.judged} judged{gaps}"
