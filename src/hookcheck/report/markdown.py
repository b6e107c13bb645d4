"""How does a report look in a repository? The compact tables, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hookcheck.contract.verdict import OUTCOMES
from hookcheck.report.marks import MARKS
from hookcheck.report.page import Box, Matrix, Page


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
        cell = f"{item.clause} on {item.family} with {item.kind}"
        yield f"- **{item.gap}**: {_text(cell)} ({', '.join(item.columns)}; topology {_text(item.topology)})"
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
    labels = " / ".join(label for label, _ in matrix.scope.kinds)
    yield from (f"### {_text(matrix.scope.title)}", "", f"Each column: {_text(labels)}.", "")
    if not matrix.rows:
        yield "No record judged anything here."
        return
    rows = [
        [_text(clause.id), _text(row.family), *(" / ".join(map(_symbol, boxes)) for boxes in row.boxes)]
        for clause, family_rows in matrix.rows
        for row in family_rows
    ]
    yield from _table(["clause", "family", *(column.name for column in matrix.columns)], rows)


def _symbol(box: Box) -> str:
    return box.mark.symbol if box.mark else " "


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
        families = _text(", ".join(account.families))
        cases = f"{account.cases} case{'' if account.cases == 1 else 's'}"
        yield (
            f"- {account.outcome} with {_text(account.kind)}: {_text(account.reason)} "
            f"({cases} each on {', '.join(names)}; {families})"
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
