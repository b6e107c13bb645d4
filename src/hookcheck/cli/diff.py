"""The command that compares two records: what changed for hooks from one torch to another, the costliest first."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hookcheck.cli.frame import DEVIATES, FINE, REPORTS, WRONG_INPUT, command
from hookcheck.cli.output import Row, fields, show
from hookcheck.contract.verdict import COST_CLASSES
from hookcheck.errors import HookcheckError

if TYPE_CHECKING:
    from hookcheck.record.compare import Comparison
    from hookcheck.record.model import Record

WORSE, NOT_WORSE, CANNOT_TELL = "worse", "not worse", "cannot tell"
_STATUS = {WORSE: DEVIATES, NOT_WORSE: FINE, CANNOT_TELL: WRONG_INPUT}


def _words(known: tuple[str, ...] = ()) -> Callable[[click.Context, click.Parameter, str], tuple[str, ...]]:
    """Splits a value at its commas; a word that is not in ``known`` is refused, where that names any."""

    def split(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in value.split(",") if word.strip())
        for word in words:
            if known and word not in known:
                raise click.BadParameter(f"{word!r} is none of {', '.join(known)}", context, parameter)
        return words

    return split


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
        reason=("string", "why cases did not run in one of the records; empty where they did"),
        cases=("integer", "how many cases"),
        families=("array", "the families that they are of"),
        kinds=("array", "the hook kinds that they are of"),
        topology=("string", "the id of a program, or of the smallest network of which a record has the content"),
        kind=("string", "its hook kind, or chapter"),
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
@click.argument("earlier", metavar="A")
@click.argument("later", metavar="B")
@click.option("--kinds", callback=_words(), default="", metavar="KIND,…", help="Only these hook kinds (or chapters).")
@click.option(
    "--only", "costs", callback=_words(COST_CLASSES), default="", metavar="COST,…",
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

    before, after = _record(earlier, reports), _record(later, reports)
    _check_kinds(kinds, before, after)
    comparison = compare(before, after, kinds)
    if costs:
        comparison = of_cost(comparison, costs)
    verdict = WORSE if comparison.worse else NOT_WORSE if comparison.conclusive else CANNOT_TELL
    rows = list(_rows(comparison, verdict))
    draw = _markdown if shape == "markdown" else _pretty
    show(rows, "json" if shape == "json" else "pretty", lambda: "\n".join(draw(rows)))
    return _STATUS[verdict]


def _record(name: str, reports: Path) -> Record:
    """The complete record that ``name`` is the file or the version of."""
    from hookcheck.record.reading import read

    path = Path(name) if Path(name).is_file() or "/" in name or ".jsonl" in name else _path(name, reports)
    record = read(path)
    if not record.footer.complete:
        raise HookcheckError(
            f"{path} is of a run that was cut short ({record.footer.stopped}), so nothing can be told from what it "
            "lacks; run `pytest conformance/` on that torch again"
        )
    return record


def _path(version: str, reports: Path) -> Path:
    from hookcheck.record.model import build_version
    from hookcheck.record.reading import record_files

    by_version: dict[str, list[Path]] = {}
    for path in record_files(reports / "records"):
        prefix, _, rest = path.name.partition("-")
        if prefix == "torch":
            by_version.setdefault(rest.rpartition("-")[0], []).append(path)
    found = by_version.get(build_version(version), [])
    if len(found) == 1:
        return found[0]
    if found:
        raise HookcheckError(f"torch {version} has several records: name the file, {' or '.join(map(str, found))}")
    known = ", ".join(sorted(by_version, key=_release))
    raise HookcheckError(
        f"{version!r} is no file, and no version with a record in {reports / 'records'}, which has "
        f"{known or 'none'}; run `pytest conformance/` on that torch, or name a record"
    )


def _release(version: str) -> Any:
    from packaging.version import InvalidVersion, Version

    try:
        return 1, Version(version)
    except InvalidVersion:  # any file may lie in the folder
        return 0, version


def _check_kinds(kinds: tuple[str, ...], before: Record, after: Record) -> None:
    known = dict.fromkeys(case.kind for record in (before, after) for case in record.cases)
    for kind in kinds:
        if kind not in known:
            raise HookcheckError(f"neither record has a hook kind or chapter {kind!r}; they have {', '.join(known)}")


def _rows(comparison: Comparison, verdict: str) -> Iterator[Row]:
    statements = {clause.id: clause.statement for clause in comparison.after.plan.clauses}
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
            "reason": cause.reason,
            "cases": group.cases,
            "families": list(group.families),
            "kinds": list(group.kinds),
            "topology": example.topology,
            "kind": example.kind,
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
    yield _wrapped(_heading(rows))
    differences = [row for row in rows if row["what"] == "difference"]
    for title, group in groupby(differences, _title):
        yield f"\n{title}"
        for row in group:
            yield _wrapped(f"{'!' if row['worse'] else ' '} {_sentence(row)}", 2, 4)
            yield from (_wrapped(line, 6, 8) for line in _facts(row))
    left_out = [row for row in rows if row["what"] == "left out"]
    if left_out:
        yield "\nleft out"
        yield from (_wrapped(_left_out(row), 4, 6) for row in left_out)
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
        yield from (f"{name}: {_line(row[name])}" for name in ("expected", "before", "after") if row[name])
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


def _line(text: str) -> str:
    """``text`` on one line, with nothing in it that moves the cursor of a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def _wrapped(text: str, first: int = 0, others: int = 2) -> str:
    width = min(shutil.get_terminal_size().columns, 100) if sys.stdout.isatty() else 100
    # what is there to copy stays whole
    return textwrap.fill(
        _line(text), width, initial_indent=" " * first, subsequent_indent=" " * others,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


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
    return "".join(f"\\{c}" if c in r"\`*_[]<>|#~&" else c for c in _line(text))
