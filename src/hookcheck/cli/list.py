"""The command that lists the clauses."""

from __future__ import annotations

from itertools import groupby

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import command
from hookcheck.cli.index import index
from hookcheck.cli.names import one_of
from hookcheck.cli.output import CLAUSE_FIELDS, Row, entries, fields, show, wrapped_head

_SCHEMAS = [
    fields(
        **CLAUSE_FIELDS,
        chapter=("string", "the chapter that it belongs to; empty where no clause speaks of the sentence"),
        state=("string", "judged, shown (never judged), or left-out where no clause speaks of the sentence"),
        reason=("string", "why it is left out; empty where it is not"),
    )
]


@command("list", _SCHEMAS)
@click.option(
    "--kind",
    metavar="KIND",
    shell_complete=completing.kinds,
    help="Only the clauses that speak of this hook kind, or register it.",
)
@click.option(
    "--chapter",
    metavar="CHAPTER",
    shell_complete=completing.from_index("chapters"),
    help="Only the clauses of this chapter.",
)
@click.option("--search", metavar="TEXT", help="Only the clauses with this text in id, statement or source.")
def list_clauses(kind: str | None, chapter: str | None, search: str | None, shape: str) -> None:
    """List the clauses of the contract by chapter, and the documented sentences that have none."""
    known = index()
    if kind is not None:
        one_of(kind, known["kinds"], "hook kind")
    if chapter is not None:
        one_of(chapter, known["chapters"], "chapter")
    rows: list[Row] = [
        {
            **{name: clause[name] for name in (*CLAUSE_FIELDS, "chapter")},
            "state": "shown" if clause["class"] == "unspecified" else "judged",
            "reason": "",
        }
        for clause in known["clauses"]
        if kind is None or kind in clause["hooks"]
    ]
    blank = dict.fromkeys(("class", "statement", "since", "source", "chapter"), "")
    rows += [
        {"id": id, **blank, "kinds": [], "state": "left-out", "reason": reason}
        for id, reason in known["left_out"].items()
        if kind is None
    ]
    rows = [row for row in rows if chapter in (None, row["chapter"]) and _mentions(row, search)]
    show(rows, shape, lambda: _drawn(rows))


def _mentions(row: Row, text: str | None) -> bool:
    texts = (row[name].casefold() for name in ("id", "statement", "source", "reason"))
    return text is None or any(text.casefold() in each for each in texts)


def _drawn(rows: list[Row]) -> str:
    parts = [
        f"{wrapped_head(chapter or 'left out')}\n{entries(map(_words, group))}"
        for chapter, group in groupby(rows, key=lambda row: row["chapter"])
    ]
    count = f"{len(rows):,} clause{'s' * (len(rows) != 1)}; `hookcheck explain ID` says more of one"
    return "\n\n".join([*parts, count])


def _words(row: Row) -> tuple[str, str]:
    if row["state"] == "left-out":
        return row["id"], row["reason"]
    return f"{row['id']}  {row['class']}, since {row['since']}", f"{row['statement']} [{row['source']}]"
