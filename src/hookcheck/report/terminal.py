"""What does one run say on a terminal? Clauses down, families across, legacy and full hooks side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hookcheck.contract.verdict import NOT_OFFERED, NOT_RUN, OUTCOMES, Cell
from hookcheck.record.model import Record
from hookcheck.report.accounts import accounts
from hookcheck.report.columns import Column, columns, count_marks
from hookcheck.report.marks import MARKS, mark
from hookcheck.report.scopes import Scope, scopes

_GUTTER = 3
"""What rich puts between two columns."""


def print_summary(record: Record, console: Console) -> None:
    """Print the verdicts of ``record``, how to read them, and what was not run and why.

    The tables fit the width of ``console``; all is ASCII where the console's encoding is not a Unicode one.
    """
    plain = not console.encoding.lower().startswith("utf")
    (column,) = columns([record])
    for scope in scopes(record.header.plan.kinds):
        for table in summary_tables(column, scope, console.width, plain=plain):
            console.print(table)
    for line in _ending(column, plain):
        console.print(Text(line.encode(console.encoding, "backslashreplace").decode(console.encoding)))


def summary_tables(column: Column, scope: Scope, width: int, *, plain: bool = False) -> Iterator[Table]:
    """The verdicts of one scope, in as many tables as it takes to fit ``width`` characters.

    A clause, or a family, that nothing was judged on has no place in them.
    """
    plan = column.record.header.plan
    kinds = [kind for _, kind in scope.kinds]
    judged = {
        (clause, family)
        for (clause, family, kind), cell in column.cells.items()
        if kind in kinds and cell.verdict not in (NOT_RUN, NOT_OFFERED)
    }
    clauses = [clause for clause in plan.clauses if any(clause.id == id for id, _ in judged)]
    pieces = {
        (clause.id, family): [_piece(column.cells.get((clause.id, family, kind)), clause.rank, plain) for kind in kinds]
        for clause in clauses
        for family in plan.families
    }
    entries = {
        family: _aligned([pieces[clause.id, family] for clause in clauses])
        for family in plan.families
        if any(family == name for _, name in judged)
    }
    heads = {family: family.replace("-", "-\n") for family in entries}
    first = max(len(name) for name in ("clause", *(clause.id for clause in clauses)))
    widths = {
        family: max(len(line) for text in (heads[family], *entries[family]) for line in str(text).split("\n"))
        for family in entries
    }
    for chunk in _chunks(widths, width - first - _GUTTER):
        table = Table(
            title=f"{scope.title} ({', '.join(label for label, _ in scope.kinds)})",
            title_justify="left",
            box=box.ASCII if plain else box.SIMPLE_HEAD,
        )
        table.add_column("clause", no_wrap=True, vertical="bottom")
        for family in chunk:
            table.add_column(heads[family], no_wrap=True)
        for place, clause in enumerate(clauses):
            table.add_row(clause.id, *(entries[family][place] for family in chunk))
        yield table


def _piece(cell: Cell | None, rank: str, plain: bool) -> Text:
    """The mark of ``cell`` with the number of deviations; empty where there is no cell."""
    if cell is None:
        return Text()
    shown = mark(cell, rank)
    return Text(f"{shown.plain if plain else shown.symbol}{cell.deviating or ''}", style=shown.colour)


def _aligned(rows: Sequence[Sequence[Text]]) -> list[Text]:
    """Each row as one text, its pieces below those of the row above."""
    widths = [max(map(len, pieces)) for pieces in zip(*rows)]
    for row in rows:
        for piece, width in zip(row, widths):
            piece.pad_right(width - len(piece))
    return [Text(" ").join(row) for row in rows]


def _chunks(widths: Mapping[str, int], room: int) -> Iterator[list[str]]:
    """The names of ``widths``, in order, in groups of which each fits ``room``; one that is too wide stands alone."""
    chunk: list[str] = []
    used = 0
    for name, width in widths.items():
        if chunk and used + width + _GUTTER > room:
            yield chunk
            chunk, used = [], 0
        chunk.append(name)
        used += width + _GUTTER
    if chunk:
        yield chunk


def _ending(column: Column, plain: bool) -> Iterator[str]:
    """The legend, the counts, and what was not run."""
    counted = count_marks(column)
    for shown in MARKS:
        if counted[shown]:
            yield f"{shown.plain if plain else shown.symbol} {counted[shown]} {shown.word}: {shown.meaning}"
    footer = column.record.footer
    outcomes = ", ".join(f"{footer.counts[name]} {name}" for name in OUTCOMES)
    yield f"{footer.counts['planned']} cases planned: {outcomes}"
    yield f"{footer.explored} more topologies explored"
    if not footer.complete:
        yield f"the run was cut short: {footer.stopped}"
    for account in accounts(column.record.cases):
        families = ", ".join(account.families)
        cases = f"{account.cases} case{'' if account.cases == 1 else 's'}"
        yield f"{account.outcome} with {account.kind}: {account.reason} ({cases}; {families})"
