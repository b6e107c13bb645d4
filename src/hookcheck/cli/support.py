"""The command that says since and until when what is promised of a hook kind holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import REPORTS, command
from hookcheck.cli.index import index, varying
from hookcheck.cli.names import one_of
from hookcheck.cli.output import Row, entries, fields, show, watched
from hookcheck.cli.records import programs_of
from hookcheck.errors import HookcheckError

_SCHEMAS = [
    fields(
        clause=("string", "the clause's id"),
        **{"class": ("string", "promise, pin or claim")},
        statement=("string", "what is promised, in one sentence"),
        kind=("string", "the hook kind; of a program the chapter"),
        device=("string", "the device"),
        state=("string", "holds, partial, fails, changed, not offered or unknown"),
        since=("string", "the first release that was run and is so"),
        last=("string", "the last in a row that was run and is so"),
        otherwise_before=(["string", "null"], "the release that was run before, and is not so"),
        otherwise_after=(["string", "null"], "the release that was run after, and is not so"),
        note=("string", "what is otherwise than stated, or why there is no answer; empty where it holds"),
        causes=("array", "how it deviates, costliest first"),
        records=("array", "the records that it rests on"),
    ),
    fields(file=("string", "a file that --write has written")),
]
FEW = 12
"""Up to so many statements are all shown; of more there is an overview."""

_ORDER = ("fails", "partial", "changed", "unknown", "not offered", "holds")


@command("support", _SCHEMAS)
@click.argument("kinds", metavar="[KIND]...", nargs=-1, shell_complete=completing.kinds)
@click.option(
    "--clause", "clauses", multiple=True, metavar="ID", shell_complete=completing.from_index("clauses"),
    help="Only this clause; may be given several times.",
)  # fmt: skip
@click.option(
    "--since", metavar="VERSION", shell_complete=completing.releases,
    help="Only what is said of this release or newer ones.",
)  # fmt: skip
@click.option(
    "--until", metavar="VERSION", shell_complete=completing.releases,
    help="Only what is said of this release or older ones.",
)  # fmt: skip
@click.option("--all", "whole", is_flag=True, help="List all statements with their causes, on a terminal too.")
@click.option("--write", is_flag=True, help="Write support.json and changes.md from the records instead.")
@REPORTS
def support(
    kinds: tuple[str, ...],
    clauses: tuple[str, ...],
    since: str | None,
    until: str | None,
    whole: bool,
    write: bool,
    reports: Path,
    shape: str,
) -> None:
    """Tell what holds for hook kinds, since and until which release of torch.

    KIND is a hook kind, with the programs that register it, or a chapter; without one, all are told. Where that are
    many statements, an overview says how it is on the newest release: what changed (with --since), what is not as
    promised, and how many hold; --all lists them, as JSON lines do: what does not hold first, on the newest release
    before others. The answer comes from support.json in the folder of reports, or from the one that comes with
    hookcheck.
    """
    if write:
        rows: list[Row] = [{"file": str(path)} for path in _written(reports)]
        show(rows, shape, lambda: "\n".join(row["file"] for row in rows))
        return
    for kind in kinds:
        one_of(kind, (*index()["kinds"], *index()["chapters"]), "hook kind or chapter")
    data = support_data(reports)
    for id in clauses:
        one_of(id, data["clauses"], "clause")
    rows = [row for row in _rows(data, kinds, since, until) if not clauses or row["clause"] in clauses]
    few = whole or len(rows) <= FEW
    show(rows, shape, lambda: _drawn(rows) if few else _overview(statements(data), rows, since, until))


def support_data(reports: Path) -> Mapping[str, Any]:
    """The content of ``support.json`` in the folder ``reports``, or else of the one that comes with hookcheck.

    Raises:
        HookcheckError: there is none, or it is not as its schema says.
    """
    from hookcheck.report.statement import SCHEMA
    from hookcheck.suite import published_reports

    path = next((p for p in (reports / "support.json", published_reports() / "support.json") if p.is_file()), None)
    if path is None:
        raise HookcheckError(f"there is no {reports / 'support.json'}; write it with `hookcheck support --write`")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HookcheckError(f"{path} cannot be read ({error}); `hookcheck support --write` writes it anew") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise HookcheckError(f"{path} has another schema than {SCHEMA}; `hookcheck support --write` writes it anew")
    return content


def statements(data: Mapping[str, Any]) -> Iterator[Row]:
    """Every statement of the support data as one row."""
    for id, clause in data["clauses"].items():
        for each in clause["support"]:
            for statement in each["statements"]:
                about = {"clause": id, "class": clause["class"], "statement": clause["statement"]}
                yield {**about, "kind": each["kind"], "device": each["device"], **statement}


def _rows(data: Mapping[str, Any], kinds: tuple[str, ...], since: str | None, until: str | None) -> Iterator[Row]:
    first, last = _version(since), _version(until)
    programs = programs_of(kinds)
    rows = [
        row
        for row in statements(data)
        if (not kinds or row["kind"] in kinds or row["clause"] in programs)
        and (first is None or _version(row["last"]) >= first)
        and (last is None or _version(row["since"]) <= last)
    ]
    yield from sorted(rows, key=lambda row: (row["otherwise_after"] is not None, _ORDER.index(row["state"])))


def _version(text: str | None) -> Any:
    from packaging.version import InvalidVersion, Version

    try:
        return None if text is None else Version(text)
    except InvalidVersion:
        raise HookcheckError(f"{text!r} is no version of torch; write one as 2.6.0") from None


def _drawn(rows: list[Row]) -> str:
    drawn = entries((f"{r['clause']} {r['kind']}: {r['state']} {_period(r)}", _text(r)) for r in rows)
    return drawn or "nothing is said of that: `hookcheck support` tells what was run"


def _overview(every: Iterable[Row], rows: list[Row], since: str | None, until: str | None) -> str:
    """The clauses and hook kinds of ``rows`` on one page, with the statements on older releases among ``every``."""
    from hookcheck.cli.overview import courses, overview

    asked = {(row["clause"], row["kind"]) for row in rows}
    those = [row for row in every if (row["clause"], row["kind"]) in asked]
    return overview([*courses(those, since, until)], since, until)


def _period(row: Row) -> str:
    from hookcheck.report.statement import period

    return period(row)


def _text(row: Row) -> str:
    return f"{row['statement']} ({row['note']})" if row["note"] else str(row["statement"])


def _written(reports: Path) -> list[Path]:
    """Draws both files from the sound records of a folder; one that is cut short or spoiled is an error."""
    from hookcheck.collector import paused_until_exit
    from hookcheck.record.errors import UnwritableReports
    from hookcheck.record.reading import read, record_files
    from hookcheck.report.changes import changes
    from hookcheck.report.support import support, text

    files = record_files(reports / "records")
    if not files:
        raise HookcheckError(f"there is no record in {reports / 'records'}; run `pytest conformance/` first")
    with paused_until_exit():
        records = [read(path) for path in watched(files, "reading")]
        links = {entry["id"]: entry["link"] for entry in index()["ledger"]}
        texts = {"support.json": text(support(records)), "changes.md": changes(records, links, varying())}
    try:
        for name, content in texts.items():
            (reports / name).write_text(content, encoding="utf-8", newline="\n")
    except OSError as fault:
        raise UnwritableReports(reports, fault) from None
    return [reports / name for name in texts]
