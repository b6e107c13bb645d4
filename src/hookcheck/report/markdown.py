"""How does a report look in a repository? The compact tables, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hookcheck.contract.verdict import OUTCOMES
from hookcheck.report.accounts import some
from hookcheck.report.marks import MARKS, Mark
from hookcheck.report.page import Matrix, Page, Section


def markdown(page: Page) -> str:
    """``page`` as Markdown."""
    sections = [
        ["# Do PyTorch's hooks keep their promises?"],
        list(_faults(page)),
        list(_unexplained(page)),
        list(_records(page)),
        [
            "## Verdicts",
            "",
            "Legend: " + "; ".join(f"{mark.symbol} {mark.word}: {mark.meaning}" for mark in MARKS) + ".",
        ],
        *(list(_matrix(matrix)) for matrix in page.matrices),
        list(_clauses(page)),
        list(_not_run(page)),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _faults(page: Page) -> Iterator[str]:
    if page.faults:
        yield from ("## Files that could not be read", "")
        yield from (f"- {_text(fault.file)}: {_text(fault.text)}" for fault in page.faults)


def _unexplained(page: Page) -> Iterator[str]:
    yield from ("## Deviations that the ledger does not explain", "")
    for item in page.unexplained:
        what = f"{item.cause.clause} on {some(item.families, 'families')} with {item.cause.kind}"
        topology = _text(item.example.topology)
        yield f"- **{item.gap}**: {_text(what)} ({', '.join(item.columns)}; topology {topology})"
    if not page.unexplained:
        yield "None in these records."


def _records(page: Page) -> Iterator[str]:
    if not page.columns:
        return
    yield from ("## Records", "")
    rows = []
    for column in page.columns:
        header, footer = column.record.header, column.record.footer
        counts = [str(footer.counts[name]) for name in ("planned", *OUTCOMES)]
        run = "complete" if footer.complete else f"cut short: {footer.stopped}"
        facts = [header.torch.version, column.device, *counts, run, header.started, header.environment["python"]]
        rows.append([_text(fact) for fact in facts])
    yield from _table(["torch", "device", "planned", *OUTCOMES, "run", "started", "Python"], rows)


def _matrix(matrix: Matrix) -> Iterator[str]:
    labels = _text(" / ".join(label for label, _ in matrix.scope.kinds))
    names = [column.name for column in matrix.columns]
    yield from (f"### {_text(matrix.scope.title)}", "")
    if not matrix.sections:
        yield "No record judged anything here."
        return
    yield from (f"Each column: {labels}, and on how many families.", "")
    yield from _table(
        ["clause", *names],
        (
            [_text(section.clause.id), *(" / ".join(map(_counts, counted)) for counted in section.overall)]
            for section in matrix.sections
        ),
    )
    differing = [row for section in matrix.sections for row in _families(section)]
    if differing:
        yield from ("", f"Where the families differ. Each column: {labels}.", "")
        yield from _table(["clause", "families", *names], differing)


def _counts(counted: Iterable[tuple[Mark, int]]) -> str:
    return " ".join(f"{mark.symbol}{count}" for mark, count in counted) or " "


def _families(section: Section) -> Iterator[list[str]]:
    """Which families are marked alike, if not all are; those of the largest group are "the others"."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for row in section.rows:
        symbols = tuple(" / ".join(mark.symbol if mark else " " for mark in marks) for marks in row.marks)
        alike.setdefault(symbols, []).extend(row.families)
    if len(alike) == 1:
        return
    usual = max(alike, key=lambda symbols: len(alike[symbols]))
    if len(alike[usual]) > 1:
        alike[usual] = [f"the other {len(alike.pop(usual))} that were judged"]  # in the last place
    for symbols, names in alike.items():
        yield [_text(section.clause.id), _text(", ".join(names)), *symbols]


def _clauses(page: Page) -> Iterator[str]:
    if page.clauses:
        yield from ("## Clauses", "")
        for clause in page.clauses.values():
            yield f"- **{_text(clause.id)}** ({clause.rank}): {_text(clause.statement)}"


def _not_run(page: Page) -> Iterator[str]:
    if not page.stopped and not page.accounts:
        return
    yield from ("## What was not run, and why", "")
    yield from (f"- {name}: cut short: {_text(reason)}" for name, reason in page.stopped)
    for account, names in page.accounts.items():
        kinds, families = some(account.kinds, "hook kinds"), some(account.families, "families")
        cases = f"{account.cases} case{'' if account.cases == 1 else 's'}"
        yield (
            f"- {account.outcome} with {_text(kinds)}: {_text(account.reason)} "
            f"({cases} each on {', '.join(names)}; {_text(families)})"
        )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of cells that are Markdown already."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + " --- |" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _text(text: str) -> str:
    """``text`` so that it stays text: on one line, with nothing that Markdown or HTML would take for its own."""
    flat = " ".join(text.split())
    for character in "\\`*_[]|~":
        flat = flat.replace(character, f"\\{character}")
    return flat.replace("&", "&amp;").replace("<", "&lt;")
