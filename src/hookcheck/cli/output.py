"""The look of an answer: drawn for people, or JSON lines with the fields that are documented here."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO, TypeVar

import click

Row = Mapping[str, Any]
Item = TypeVar("Item")


def fields(**fields: tuple[Any, str]) -> dict[str, Any]:
    """The JSON Schema of an object that has exactly these fields, each given by its type and its meaning."""
    return {
        "type": "object",
        "properties": {name: {"type": kind, "description": meaning} for name, (kind, meaning) in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }


CLAUSE_FIELDS: dict[str, tuple[Any, str]] = {
    "id": ("string", "the clause's id"),
    "class": ("string", "promise, pin, claim or unspecified"),
    "statement": ("string", "what is promised, in one sentence"),
    "since": ("string", "the torch release since which it holds"),
    "source": ("string", "what promises it"),
    "kinds": ("array", "the hook kinds that it speaks of"),
}
"""What is said of a clause wherever one is an answer."""

SCHEMAS: dict[str, list[dict[str, Any]]] = {}
"""For each command the JSON Schemas of a line that it prints with ``--format json``: it is one of them."""


def documented(schema: Row) -> str:
    """The fields of a schema, as the end of a command's help."""
    lines = ["\b", "Fields of a line of --format json:"]
    for name, field in schema["properties"].items():
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        lines.append(f"  {name}: {field['description']} ({' or '.join(kinds)})")
    return "\n".join(lines)


def echo(text: str, err: bool = False, nl: bool = True) -> None:
    """Prints ``text``, or says it on standard error, in the encoding of the stream.

    click would write UTF-8 where that is ASCII, to terminals that cannot show it.
    """
    click.echo(text, sys.stderr if err else sys.stdout, nl)


def readable(error: UnicodeError) -> tuple[str, int]:
    """What stands for a character that an encoding lacks: what reads the same, or its escape."""
    assert isinstance(error, UnicodeEncodeError)
    characters = error.object[error.start : error.end]
    return "".join(_READ_AS.get(c) or c.encode("ascii", "backslashreplace").decode() for c in characters), error.end


_READ_AS = {
    "\u2026": "...",
    "\u2192": "->",
    "\u2013": "-",
    "\u00d7": "x",
    "\u00b2": "^2",
    "\u2265": ">=",
    "\u201c": '"',
    "\u201d": '"',
}

READABLE = "hookcheck.readable"
"""The name of `readable` among the ways in which streams meet such characters."""

codecs.register_error(READABLE, readable)


def show(rows: Iterable[Row], shape: str, pretty: Callable[[], Any]) -> None:
    """The rows as JSON lines, or what ``pretty`` makes of them: a text, or something that rich draws."""
    if shape == "json":
        for row in rows:
            echo(json.dumps(row))
        return
    drawn = pretty()
    if isinstance(drawn, str):
        echo(drawn)
    elif drawn is not None:
        _draw(drawn)


def _draw(drawn: Any) -> None:
    """Prints what rich draws: as wide as the terminal, or plain where there is none, and as wide as COLUMNS (120)."""
    from rich.console import Console

    columns, lines = shutil.get_terminal_size((120, 24))
    if sys.stdout.isatty():  # both sizes, since rich takes a dumb terminal for 80 columns
        Console(width=columns, height=lines, highlight=False, markup=False).print(drawn)
        return
    console = Console(file=sys.stdout, width=columns, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(drawn)
    echo("\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n"))


def is_dumb() -> bool:
    """Whether the terminal says that it has neither colours nor a cursor that moves, as those in editors do."""
    return os.environ.get("TERM") == "dumb"


def _is_drawn_on(stream: TextIO) -> bool:
    return stream.isatty() and not is_dumb()


def watched(items: Sequence[Item], what: str) -> Iterable[Item]:
    """``items``, with a bar of how far they are on the terminal; where standard error is none, with nothing."""
    from rich.console import Console
    from rich.progress import track

    return track(items, what, console=Console(stderr=True), transient=True, disable=not _is_drawn_on(sys.stderr))


@contextlib.contextmanager
def saying() -> Iterator[Callable[[str], None]]:
    """What says on one line of the terminal what is being done, and leaves nothing there; elsewhere it is silent."""
    said = 0.0

    def say(what: str) -> None:
        nonlocal said
        if _is_drawn_on(sys.stderr) and time.monotonic() - said >= _BETWEEN:
            said = time.monotonic()
            echo(f"\r\033[K{line(what)[: shutil.get_terminal_size().columns - 1]}", nl=False, err=True)

    try:
        yield say
    finally:
        if said:
            echo("\r\033[K", nl=False, err=True)


_BETWEEN = 0.1
"""Seconds between two changes of that line, so that drawing it costs nothing."""


def width() -> int:
    """How many columns a text may fill: those of the terminal, at most 100, which is also that of a pipe."""
    return max(20, min(shutil.get_terminal_size((100, 24)).columns, 100))


def line(text: str) -> str:
    """``text`` on one line, with nothing in it that moves the cursor of a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def wrapped(text: str, first: int = 0, others: int = 2) -> str:
    """``text`` as a paragraph, its first line and the others indented by so many columns; what can be copied stays
    whole."""
    return textwrap.fill(
        line(text), width(), initial_indent=" " * first, subsequent_indent=" " * others,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def entries(items: Iterable[tuple[str, str]]) -> str:
    """Each item's head in bold, and its text as a paragraph below."""
    return "\n".join(f"{wrapped_head(head)}\n{wrapped(text, 4, 4)}" for head, text in items)


def wrapped_head(text: str) -> str:
    """``text`` as a head: bold where the output is a terminal."""
    return click.style(wrapped(text), bold=True)


def table(rows: Iterable[Row], columns: tuple[str, ...]) -> Any:
    """A table; where it is too wide for the terminal, each row as its first field with the others below.

    Nothing is cut off, and what is there to copy stays whole.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    rows, drawn = list(rows), Table(box=box.SIMPLE_HEAD)
    texts = {column for column in columns for row in rows if " " in str(row[column])}
    for column in columns:
        drawn.add_column(column.replace("_", " "), no_wrap=column not in texts)
    for row in rows:
        drawn.add_row(*(str(row[column]) for column in columns))
    needed = Console(width=10**6).measure(drawn).minimum + _SPARE * len(texts)
    if needed <= shutil.get_terminal_size((120, 24)).columns:
        return drawn
    head, *others = columns
    return entries(
        (str(row[head]), "; ".join(f"{each.replace('_', ' ')}: {row[each]}" for each in others if str(row[each])))
        for row in rows
    )


_SPARE = 12
"""How much wider than its longest word a column of texts is at least."""


def sheet(row: Row) -> Any:
    """Each field of an object with its name before it."""
    from rich.table import Table

    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in row.items():
        drawn.add_row(name.replace("_", " "), text(value))
    return drawn


def text(value: Any) -> str:
    """A value of JSON as words; ``none`` for one that is empty."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {text(item)}" for key, item in value.items()) or "none"
    return (", ".join(map(text, value)) if isinstance(value, list) else str(value)) or "none"
