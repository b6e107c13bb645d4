"""What does one run say on a terminal? Families down, clauses across, legacy and full hooks side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hookcheck.contract.verdict import NOT_OFFERED, NOT_RUN, OUTCOMES
from hookcheck.record.model import Record
from hookcheck.report.accounts import Account, accounts, some
from hookcheck.report.columns import Column, columns, count_marks
from hookcheck.report.marks import ALARMING, CONFORMING, MARKS, UNJUDGED, mark
from hookcheck.report.scopes import TableScope, is_chapter, scopes

Rows = Mapping[str, Mapping[str, Text]]
"""For each family, and in it for each clause, the marks of the hook kinds of one scope."""

REASONS = 8
"""How many reasons for one outcome are listed; those of fewer cases are counted, and the report has them all."""


def print_summary(record: Record, console: Console) -> None:
    """Print the verdicts of ``record``, how to read them, and what was not run and why.

    No line is longer than ``console`` is wide; all is ASCII where the console's encoding is not a Unicode one.
    """
    plain = not console.encoding.lower().startswith("utf")
    (column,) = columns([record])
    above: Rows = {}
    for number, scope in enumerate(scopes(record.header.plan.kinds)):
        if not is_chapter(scope):
            rows = judged_rows(column, scope, plain=plain)
            shown = rows if number == 0 else _notable(rows, plain)
            for part in _scope(scope, rows, shown, above, console.width, plain):
                console.print(part)
            above = rows
    for part in _chapters(column, plain):
        console.print(part)
    for line in _ending(column, plain):
        said = line.encode(console.encoding, "backslashreplace").decode(console.encoding)
        for piece in textwrap.wrap(said, console.width, subsequent_indent="  "):
            console.print(Text(piece))


def judged_rows(column: Column, scope: TableScope, *, plain: bool = False) -> Rows:
    """The marks of one scope; a clause, or a family, that nothing was judged on has no place in them."""
    plan, kinds = column.record.header.plan, [kind for _, kind in scope.kinds]
    judged = {
        (clause, family)
        for (clause, family, kind), cell in column.cells.items()
        if kind in kinds and cell.verdict not in (NOT_RUN, NOT_OFFERED)
    }
    clauses = [clause for clause in plan.clauses if any(clause.id == id for id, _ in judged)]

    def marks(family: str, id: str, rank: str) -> Text:
        cells = [column.cells.get((id, family, kind)) for kind in kinds]
        shown = [mark(cell, rank) if cell else None for cell in cells]
        return Text.assemble(*((s.plain if plain else s.symbol, s.colour) if s else " " for s in shown))

    return {
        family: {clause.id: marks(family, clause.id, clause.rank) for clause in clauses}
        for family in plan.families
        if any(family == name for _, name in judged)
    }


def _notable(rows: Rows, plain: bool) -> Rows:
    """The families in which something is marked as neither conforming nor without a verdict."""
    usual = {(m.plain if plain else m.symbol) for m in (CONFORMING, *UNJUDGED)} | {" "}
    return {family: marks for family, marks in rows.items() if any(set(text.plain) - usual for text in marks.values())}


def _scope(scope: TableScope, rows: Rows, shown: Rows, above: Rows, width: int, plain: bool) -> Iterator[Text | Table]:
    """One scope with its title, of whose ``rows`` only those are ``shown``; those of the scope above it not again."""
    new = {family: marks for family, marks in rows.items() if above.get(family) != marks}
    title = f"{scope.title} ({', '.join(label for label, _ in scope.kinds)})"
    if not rows:
        return
    if rows.keys() != above.keys() or len(new) == len(rows):
        others = len(rows) - len(shown)
        yield from (Text(title), *_tables(shown, width, plain))
        if others:
            yield Text(f"{'the other ' if shown else ''}{others} families: all that was judged conforms\n")
    elif new:
        yield from (Text(f"{title}: as above, but for"), *_tables(new, width, plain))
    else:
        yield Text(f"{title}: as above on every family\n")


def _tables(rows: Rows, width: int, plain: bool) -> Iterator[Text | Table]:
    """``rows`` in as few tables as fit ``width`` characters, with about as many clauses in each."""
    clauses = list(dict.fromkeys(clause for marks in rows.values() for clause in marks))
    heads = {clause: clause.replace("-", "\n", 1) for clause in clauses}
    widest = max((len(line) for head in heads.values() for line in head.split("\n")), default=0)
    column = 1 + max((len(text) for marks in rows.values() for text in marks.values()), default=0)
    room = (width - max(map(len, ("family", *rows)), default=0)) // max(column, 1 + widest)
    for chunk in _chunks(clauses, max(room, 1)):
        table = Table(box=box.ASCII if plain else box.SIMPLE_HEAD, show_edge=False, padding=0)
        table.add_column("family", no_wrap=True, vertical="bottom")
        for clause in chunk:
            table.add_column(heads[clause], no_wrap=True)
        for family, marks in rows.items():
            table.add_row(family, *(marks[clause] for clause in chunk))
        yield table
        yield Text()


def _chapters(column: Column, plain: bool) -> Iterator[Text | Table]:
    """The chapters of programs, each with how many of its programs carry each mark, and which ask for attention."""
    chapters = [scope for scope in scopes(column.record.header.plan.kinds) if is_chapter(scope)]
    ranks = {clause.id: clause.rank for clause in column.record.header.plan.clauses}
    marked = {
        scope.kinds[0][1]: {
            c.clause: mark(c, ranks[c.clause]) for c in column.cells.values() if c.kind == scope.kinds[0][1]
        }
        for scope in chapters
    }
    judged = {chapter: marks for chapter, marks in marked.items() if set(marks.values()) - {*UNJUDGED}}
    if not judged:
        return
    present = [shown for shown in MARKS if any(shown in marks.values() for marks in judged.values())]
    table = Table(box=box.ASCII if plain else box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("programs", no_wrap=True)
    for shown in present:
        table.add_column(shown.plain if plain else shown.symbol, justify="right", style=shown.colour)
    table.add_column("asks for attention")
    for chapter, marks in judged.items():
        counts = [sum(m is shown for m in marks.values()) for shown in present]
        alarming = ", ".join(id for id, m in marks.items() if m in ALARMING)
        table.add_row(chapter, *(str(count or "") for count in counts), alarming)
    yield table
    yield Text()


def _chunks(names: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    """``names`` in order, in as few parts of at most ``most`` as possible, none much shorter than another."""
    parts = -(-len(names) // most)
    for part in range(parts):
        yield names[part * len(names) // parts : (part + 1) * len(names) // parts]


def _ending(column: Column, plain: bool) -> Iterator[str]:
    """The legend, the counts, and what was not run."""
    counted = count_marks(column)
    for shown in MARKS:
        if counted[shown]:
            yield f"{shown.plain if plain else shown.symbol} {counted[shown]} {shown.word}: {shown.meaning}"
    footer = column.record.footer
    outcomes = ", ".join(f"{footer.counts[name]} {name}" for name in OUTCOMES)
    yield f"{footer.counts['planned']} cases: {outcomes}"
    yield f"{footer.explored} more topologies explored"
    if not footer.complete:
        yield f"the run was cut short: {footer.stopped}"
    for outcome, group in groupby(accounts(column.record.cases), lambda account: account.outcome):
        yield from _reasons(outcome, sorted(group, key=lambda account: -account.cases))


def _reasons(outcome: str, ordered: Sequence[Account]) -> Iterator[str]:
    """Accounts of one outcome, those of most cases first."""
    for account in ordered[:REASONS]:
        cases = f"{account.cases} case{'' if account.cases == 1 else 's'}"
        kinds = some(account.kinds, "hook kinds", 1)
        yield f"{outcome} with {kinds}: {account.reason} ({cases}; {some(account.families, 'families')})"
    if ordered[REASONS:]:
        cases = f"{sum(account.cases for account in ordered[REASONS:])} cases"
        yield f"{outcome} for {len(ordered[REASONS:])} more reasons, which the report lists ({cases})"
