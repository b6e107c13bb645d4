"""One run in Markdown, for the summary of a step of GitHub Actions (``$GITHUB_STEP_SUMMARY``)."""

from __future__ import annotations

from collections.abc import Iterator

from hookcheck.record.model import Record
from hookcheck.report.changes import markdown
from hookcheck.report.summary import new_causes, summary


def markdown_summary(record: Record) -> str:
    """The verdict as a heading, what is new as a table, and the rest as a list."""
    return "\n".join(_lines(record))


def _lines(record: Record) -> Iterator[str]:
    verdict, *others = (line for line in summary(record, 10_000) if not line.startswith("new: "))
    new = new_causes(record)
    yield f"### {markdown(verdict)}"
    if new:
        statements = {clause.id: clause.statement for clause in record.header.plan.clauses}
        yield ""
        yield "| clause | what is promised | instead | cases | for one see |"
        yield "| --- | --- | --- | --- | --- |"
        for cause in new:
            texts = (cause.clause, statements[cause.clause], cause.gap, f"{cause.cases:,}")
            yield f"| {' | '.join(map(markdown, texts))} | `hookcheck explain {cause.topology}` |"
    yield ""
    yield from (f"- {markdown(line)}" for line in others)
