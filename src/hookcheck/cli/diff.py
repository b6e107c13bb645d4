"""The command that compares two records: what changed for hooks from one torch to another, the costliest first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import DEVIATES, FINE, REPORTS, WRONG_INPUT, command, words
from hookcheck.cli.index import index, varying
from hookcheck.cli.output import Row, fields, line, show, wrapped
from hookcheck.cli.records import check_kinds, complete_record, corpus_lengths, programs_of
from hookcheck.contract.verdict import COST_CLASSES

if TYPE_CHECKING:
    from hookcheck.record.compare import Comparison

WORSE, NOT_WORSE, CANNOT_TELL = "worse", "not worse", "cannot tell"
_STATUS = {WORSE: DEVIATES, NOT_WORSE: FINE, CANNOT_TELL: WRONG_INPUT}


_SCHEMAS = [
    fields(
        what=("string", "comparison"),
        earlier=("string", "the version of torch in the first record"),
        later=("string", "the version of torch in the second"),
        verdict=("string", "worse, not worse, or cannot tell"),
        compared=("integer", "how many cases ran in both"),
    ),
    fields(
        what=("string", "difference"),
        status=("string", "what has become of the cases"),
        worse=("boolean", "whether that is worse than it was"),
        cost=("string", "what it costs the user of a hook; empty where it is no deviation"),
        clause=("string", "the clause's id; empty where it is about none"),
        statement=("string", "what is promised, in one sentence; empty without a clause"),
        gap=("string", "how it deviates; empty where it is no deviation"),
        ledger=(["string", "null"], "the id of the ledger's entry that explains it"),
        why=("string", "why that is so, in the words of that entry; empty without one"),
        reason=("string", "why cases did not run in one of the records; empty where they did"),
        cases=("integer", "how many cases"),
        families=("array", "the families that they are of"),
        kinds=("array", "the hook kinds that they are of"),
        topology=("string", "the id of a program, or of the smallest network of which a record has the content"),
        kind=("string", "its hook kind, or chapter"),
        relation=("string", "what does not hold there; empty where no record says"),
        site=("string", "where it does not: the kind of place, and its name; empty where no record says"),
        expected=("string", "what was expected there; empty where no record says"),
        before=("string", "what was seen in the first record"),
        after=("string", "what was seen in the second; empty where no record says"),
    ),
    fields(
        what=("string", "left out"),
        why=("string", "why cases cannot be compared"),
        families=("array", "the families that they are of"),
        cases=("integer", "how many cases"),
    ),
]


@command("diff", _SCHEMAS, shapes=("pretty", "markdown", "json"))
@click.argument("earlier", metavar="A", shell_complete=completing.records)
@click.argument("later", metavar="B", shell_complete=completing.records)
@click.option(
    "--kinds",
    callback=words(),
    default="",
    metavar="KIND,...",
    shell_complete=completing.kinds,
    help="Only these hook kinds (or chapters).",
)
@click.option(
    "--only", "costs", callback=words(COST_CLASSES), default="", metavar="COST,...",
    help=f"Only what costs this: {', '.join(COST_CLASSES)}. What disappeared is always shown.",
)  # fmt: skip
@REPORTS
def diff(earlier: str, later: str, kinds: tuple[str, ...], costs: tuple[str, ...], reports: Path, shape: str) -> int:
    """Compare two records case by case: what is worse in B than in A, what is mended, what cannot be told.

    A and B are files, or versions of torch that have a record in the folder of reports. Only what ran in both is
    compared, by cause. Exit code: 0 nothing is worse, 1 something is, 2 that cannot be told (also for wrong input).
    Worse is what newly deviates, what deviates at a higher cost or in a further way, a pin that changed, what is no
    longer offered, and what has disappeared.
    """
    from hookcheck.record.compare import compare, of_cost

    before, after = complete_record(earlier, reports), complete_record(later, reports)
    check_kinds(kinds, before, after)
    comparison = compare(before, after, kinds, programs_of(kinds), corpus_lengths().get, varying())
    if costs:
        comparison = of_cost(comparison, costs)
    verdict = WORSE if comparison.worse else NOT_WORSE if comparison.conclusive else CANNOT_TELL
    rows = list(_rows(comparison, verdict))
    draw = _markdown if shape == "markdown" else _pretty
    show(rows, "json" if shape == "json" else "pretty", lambda: "\n".join(draw(rows)))
    return _STATUS[verdict]


def _rows(comparison: Comparison, verdict: str) -> Iterator[Row]:
    statements = {clause.id: clause.statement for clause in comparison.after.plan.clauses}
    reasons = {entry["id"]: entry["why"] for entry in index()["ledger"]}
    yield {
        "what": "comparison",
        "earlier": comparison.before.torch.version,
        "later": comparison.after.torch.version,
        "verdict": verdict,
        "compared": comparison.compared,
    }
    for group in comparison.groups:
        cause, example = group.cause, group.example
        yield {
            "what": "difference",
            "status": cause.status,
            "worse": cause.worse,
            "cost": cause.cost,
            "clause": cause.clause,
            "statement": statements.get(cause.clause, ""),
            "gap": cause.gap,
            "ledger": cause.ledger,
            "why": reasons.get(cause.ledger or "", ""),
            "reason": cause.reason,
            "cases": group.cases,
            "families": list(group.families),
            "kinds": list(group.kinds),
            "topology": example.topology,
            "kind": example.kind,
            "relation": example.relation or "",
            "site": str(example.site or ""),
            "expected": example.expected,
            "before": example.before,
            "after": example.after,
        }
    for item in comparison.left_out:
        yield {"what": "left out", "why": item.why, "families": list(item.families), "cases": item.cases}


def _heading(rows: list[Row]) -> str:
    comparison = rows[0]
    differences = [row for row in rows if row["what"] == "difference"]
    worse = sum(row["worse"] for row in differences)
    mended = sum(row["status"] == "mended" for row in differences)
    counts = f"{worse} worse, {mended} mended, {len(differences) - worse - mended} other"
    torches = f"torch {comparison['earlier']} → {comparison['later']}"
    return f"{torches}: {comparison['verdict']}. {comparison['compared']:,} cases ran in both; by cause: {counts}."


def _pretty(rows: list[Row]) -> Iterator[str]:
    yield wrapped(_heading(rows))
    differences = [row for row in rows if row["what"] == "difference"]
    for title, group in groupby(differences, _title):
        yield f"\n{title}"
        for row in group:
            yield wrapped(f"{'!' if row['worse'] else ' '} {_sentence(row)}", 2, 4)
            yield from (wrapped(fact, 6, 8) for fact in _facts(row))
    left_out = [row for row in rows if row["what"] == "left out"]
    if left_out:
        yield "\nleft out"
        yield from (wrapped(_left_out(row), 4, 6) for row in left_out)
    if any(row["worse"] for row in differences):
        yield "\n! is worse"


def _title(row: Row) -> str:
    return "disappeared" if row["status"] == "disappeared" else str(row["cost"] or "what is offered")


def _sentence(row: Row) -> str:
    """What has become of how many cases, and of which promise."""
    count = f"{row['cases']:,} case{'s' * (row['cases'] != 1)}"
    what = ", ".join(filter(None, [row["gap"], row["reason"]]))
    promise = f"; {row['clause']}: {row['statement']}" if row["clause"] else ""
    return f"{row['status']} ({count}): {what}{promise}"


def _facts(row: Row) -> Iterator[str]:
    if row["clause"]:
        yield from (f"{name}: {line(row[name])}" for name in ("expected", "before", "after") if row[name])
    if row["clause"] and row["why"] and not row["expected"]:
        yield f"why: {row['why']}"
    if row["ledger"]:
        yield f"known: hookcheck explain {row['ledger']}"
    yield f"example: {_case(row)}"


def _case(row: Row) -> str:
    program = row["families"] == ["program"]
    if program:
        return f"hookcheck repro {row['topology']}"
    if not row["clause"]:
        return f"{row['topology']} with {row['kind']}"
    return f"hookcheck repro {row['topology']} --clause {row['clause']} --kind {row['kind']}"


def _left_out(row: Row) -> str:
    if not row["cases"]:
        return str(row["why"])
    families = row["families"]
    where = ", ".join(families) if len(families) <= 4 else f"{len(families)} families"
    return f"{row['why']}: {row['cases']:,} cases of {where}"


def _markdown(rows: list[Row]) -> Iterator[str]:
    yield f"**{_escaped(_heading(rows))}**"
    differences = [row for row in rows if row["what"] == "difference"]
    if differences:
        yield "\n| | cost | what | expected | before | after | example |\n| --- | --- | --- | --- | --- | --- | --- |"
    for row in differences:
        texts = [_title(row), _sentence(row), row["expected"], row["before"], row["after"], _case(row)]
        yield f"| {'worse' if row['worse'] else ''} | {' | '.join(map(_escaped, texts))} |"
    left_out = [row for row in rows if row["what"] == "left out"]
    if left_out:
        yield "\nLeft out:\n"
        yield from (f"- {_escaped(_left_out(row))}" for row in left_out)


def _escaped(text: str) -> str:
    """``text`` as Markdown that shows it as it is."""
    return "".join(f"\\{c}" if c in r"\`*_[]<>|#~&" else c for c in line(text))
