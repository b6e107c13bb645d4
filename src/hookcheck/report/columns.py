"""Which records are compared, and in what order? One column a record: by version of torch, then by device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.version import Version

from hookcheck.contract.clause import UNSPECIFIED
from hookcheck.contract.verdict import Cell
from hookcheck.record.model import PlannedClause, Record
from hookcheck.report.marks import Mark, mark

CellKey = tuple[str, str, str]
"""Clause, family and hook kind."""


@dataclass(frozen=True)
class Column:
    """One record with its cells; clauses that are never judged have none here."""

    version: str
    device: str
    record: Record
    cells: Mapping[CellKey, Cell]

    @property
    def name(self) -> str:
        """How texts speak of this record."""
        return f"{self.version} {self.device}"


def columns(records: Iterable[Record]) -> tuple[Column, ...]:
    """``records`` as columns, the oldest version first."""
    ordered = sorted(records, key=lambda record: (Version(record.header.torch.version), record.header.device))
    return tuple(map(_column, ordered))


def _column(record: Record) -> Column:
    judged = {clause.id for clause in record.header.plan.clauses if clause.rank != UNSPECIFIED}
    return Column(
        version=record.header.build,
        device=record.header.device,
        record=record,
        cells={(cell.clause, cell.family, cell.kind): cell for cell in record.cells() if cell.clause in judged},
    )


def clauses(shown: Iterable[Column]) -> dict[str, PlannedClause]:
    """All clauses by id, as the newest torch's record words and orders them."""
    by_id: dict[str, PlannedClause] = {}
    for column in reversed(tuple(shown)):
        for clause in column.record.header.plan.clauses:
            by_id.setdefault(clause.id, clause)
    return by_id


def families(shown: Iterable[Column]) -> tuple[str, ...]:
    """All families, in the order of the newest torch's record."""
    return tuple(
        dict.fromkeys(name for column in reversed(tuple(shown)) for name in column.record.header.plan.families)
    )


def kinds(shown: Iterable[Column]) -> tuple[str, ...]:
    """All hook kinds, in the order of the newest torch's record."""
    return tuple(dict.fromkeys(name for column in reversed(tuple(shown)) for name in column.record.header.plan.kinds))


def count_marks(column: Column) -> Counter[Mark]:
    """How many cells of ``column`` carry each mark."""
    classes = {clause.id: clause.rank for clause in column.record.header.plan.clauses}
    return Counter(mark(cell, classes[cell.clause]) for cell in column.cells.values())
