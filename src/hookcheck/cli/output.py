"""How does the answer of a command look? Drawn for people, or JSON lines with the fields that are documented here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

Row = Mapping[str, Any]
Item = TypeVar("Item")


def _fields(**fields: tuple[Any, str]) -> dict[str, Any]:
    """The JSON Schema of an object that has exactly these fields, each given by its type and its meaning."""
    return {
        "type": "object",
        "properties": {name: {"type": kind, "description": meaning} for name, (kind, meaning) in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }


_CLAUSE: dict[str, tuple[Any, str]] = {
    "id": ("string", "the clause's id"),
    "class": ("string", "promise, pin, claim or unspecified"),
    "statement": ("string", "what is promised, in one sentence"),
    "since": ("string", "the torch release since which it holds"),
    "source": ("string", "what promises it"),
    "kinds": ("array", "the hook kinds that it speaks of"),
}

SCHEMAS: dict[str, list[dict[str, Any]]] = {
    "list": [
        _fields(
            **_CLAUSE,
            state=("string", "judged, shown (never judged), or left-out where no clause speaks of the sentence"),
            reason=("string", "why it is left out; empty where it is not"),
        )
    ],
    "kill-matrix": [
        _fields(
            fault=("string", "how the hook engine is wrong; empty for a clause that catches no fault"),
            clauses=("array", "the clauses that catch it"),
            reason=("string", "why a clause catches none; empty for a fault"),
        )
    ],
    "claims": [
        _fields(
            id=("string", "the claim's id"),
            statement=("string", "what is claimed, in one sentence"),
            answer=("string", "holds, refuted, or partly where some facts of it are refuted"),
            torch=("string", "the releases that the answer is for, as a version specifier"),
            source=("string", "where it is claimed, and what it is about"),
        )
    ],
    "families": [
        _fields(
            name=("string", "the family's name"),
            statement=("string", "what its topologies share"),
            corpus_size=("integer", "how many topologies of it the corpus holds"),
        )
    ],
    "layers": [
        _fields(
            name=("string", "the class in torch.nn"),
            state=("string", "covered, left-out, or not-offered by the torch that is installed"),
            reason=("string", "why it is left out or not offered; empty where it is covered"),
        )
    ],
    "coverage": [
        _fields(
            axis_a=("string", "an axis: one way in which networks under hooks differ"),
            word_a=("string", "a word of it"),
            axis_b=("string", "another axis"),
            word_b=("string", "a word of that"),
            topologies=("integer", "how many topologies of the corpus have both at one call of a module"),
            reason=("string", "why none has; empty where one has; 'possible, …' where nothing stands in the way"),
        )
    ],
    "report": [_fields(file=("string", "a file that was written"))],
    "explain": [
        _fields(what=("string", "clause"), **_CLAUSE, ledger=("array", "ids of the ledger's entries that name it")),
        _fields(
            what=("string", "ledger entry"),
            id=("string", "the entry's id"),
            clauses=("array", "the clauses that it concerns"),
            families=("array", "the families; all is one word for every family"),
            kinds=("array", "the hook kinds"),
            devices=("array", "the devices"),
            torch=("string", "the releases, as a version specifier"),
            when=("object", "the features that a subject must have, each with the words that will do"),
            instead=("array", "how it deviates"),
            says=("string", "a part of the text of the exception or warning; empty where there is none"),
            why=("string", "the reason"),
            link=("string", "what the reason rests on"),
            reviewed=("string", "the date of the last review"),
        ),
        _fields(
            what=("string", "topology"),
            id=("string", "the topology's id"),
            where=("string", "its family; for one that is not in the corpus the record or file that holds it"),
            device=("string", "any, or the one kind of device that it is about"),
            since=("string", "the first torch release that can run it"),
            needs=("string", "what it uses that came with that release"),
            script=("string", "the program, which needs torch alone"),
        ),
    ],
    "diff": [
        _fields(
            what=("string", "comparison"),
            earlier=("string", "the version of torch in the first record"),
            later=("string", "the version of torch in the second"),
            verdict=("string", "worse, not worse, or cannot tell"),
            compared=("integer", "how many cases ran in both"),
        ),
        _fields(
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
        _fields(
            what=("string", "left out"),
            why=("string", "why cases cannot be compared"),
            families=("array", "the families that they are of"),
            cases=("integer", "how many cases"),
        ),
    ],
    "validate": [
        _fields(
            file=("string", "the record"),
            valid=("boolean", "whether it is a sound record"),
            error=(["string", "null"], "the name of what is wrong with it"),
            message=(["string", "null"], "what is wrong where, and what to do"),
        )
    ],
    "repro": [
        _fields(
            topology=("string", "the topology's id"),
            where=("string", "the family, record or file that it is from"),
            clause=("string", "the clause's id"),
            kind=("string", "the hook kind"),
            device=("string", "the device that the script runs on"),
            script=("string", "the script"),
        ),
        _fields(
            clause=("string", "the id of the clause, which is a program"),
            chapter=("string", "the chapter that it belongs to"),
            device=("string", "the device that the script runs on"),
            script=("string", "the script"),
        ),
    ],
    "run": [
        _fields(
            record=("string", "a record that the run has written"),
            torch=("string", "the version of torch"),
            device=("string", "the device"),
            complete=("boolean", "whether the run went to its end"),
            verdicts=("object", "how many cells have each verdict"),
        )
    ],
    "check": [
        _fields(
            what=("string", "verdict"),
            module=("string", "the path of the module; empty for the model itself"),
            call=(
                ["integer", "null"],
                "which call of the module, from 0; null where it is about the module or the step",
            ),
            kind=("string", "the hook kind"),
            clause=("string", "the clause's id; empty where none is judged"),
            verdict=("string", "conforms, deviates: known, deviates: new, not reached, or not judged"),
            gap=("string", "how it deviates; empty where it does not"),
            expected=("string", "what was expected; empty where it does not deviate"),
            observed=("string", "what was seen; empty where it does not deviate"),
            why=("string", "the ledger's reason, or why nothing is judged"),
            link=("string", "what the reason rests on"),
        ),
        _fields(
            what=("string", "remark"),
            topic=("string", "what it is about"),
            text=("string", "a sentence"),
            modules=("array", "the paths of the modules that it is about"),
            kinds=("array", "the hook kinds that it is about"),
        ),
    ],
    "scan": [
        _fields(
            rule=("string", "the rule's id"),
            severity=("string", "error, warning or note"),
            path=("string", "the file"),
            line=("integer", "the first line of the place, from 1"),
            column=("integer", "its first column, from 1"),
            end_line=("integer", "the last line of the place"),
            end_column=("integer", "the column after its last"),
            message=("string", "what is wrong there"),
            sure=("boolean", "whether the receiver was inferred"),
            link=("string", "what the rule rests on"),
        ),
        _fields(
            path=("string", "the file"),
            line=("integer", "the line of the registration, from 1"),
            column=("integer", "its column, from 1"),
            kind=("string", "the hook kind, or all that it can be"),
            call=("string", "the function or method that registers"),
            receiver=("string", "what it is registered on; empty where that is unknown"),
            sure=("boolean", "whether the receiver was inferred"),
            hook=("string", "the hook's expression; two for saved tensors"),
            options=("object", "the options that are given, such as prepend"),
        ),
        _fields(path=("string", "a file that was not scanned"), unread=("string", "why not")),
    ],
}
"""For each command the JSON Schemas of a line that it prints with ``--format json``: it is one of them."""


def documented(schema: Row) -> str:
    """The fields of a schema, as the end of a command's help."""
    lines = ["\b", "Fields of a line of --format json:"]
    for name, field in schema["properties"].items():
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        lines.append(f"  {name}: {field['description']} ({' or '.join(kinds)})")
    return "\n".join(lines)


def show(rows: Iterable[Row], shape: str, pretty: Callable[[], Any]) -> None:
    """The rows as JSON lines, or what ``pretty`` makes of them: a text, or something that rich draws."""
    if shape == "json":
        for row in rows:
            click.echo(json.dumps(row))
        return
    drawn = pretty()
    if isinstance(drawn, str):
        click.echo(drawn)
    elif drawn is not None:
        _draw(drawn)


def _draw(drawn: Any) -> None:
    """Prints what rich draws: as wide as the terminal, or plain and 120 columns wide where there is none."""
    from rich.console import Console

    if sys.stdout.isatty():
        Console(highlight=False, markup=False).print(drawn)
        return
    console = Console(file=sys.stdout, width=120, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(drawn)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n"))


def watched(items: Sequence[Item], what: str) -> Iterable[Item]:
    """``items``, with a bar of how far they are on the terminal; where standard error is none, with nothing."""
    from rich.console import Console
    from rich.progress import track

    return track(items, what, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


def table(rows: Iterable[Row], columns: tuple[str, ...]) -> Any:
    """A table that wraps what is long, and cuts nothing off."""
    from rich import box
    from rich.table import Table

    drawn = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        drawn.add_column(column.replace("_", " "), overflow="fold", no_wrap=column == "id")  # ids are there to copy
    for row in rows:
        drawn.add_row(*(str(row[column]) for column in columns))
    return drawn


def sheet(row: Row) -> Any:
    """Each field of an object with its name before it."""
    from rich.table import Table

    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in row.items():
        drawn.add_row(name, _told(value))
    return drawn


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_told(item)}" for key, item in value.items()) or "none"
    return (", ".join(value) if isinstance(value, list) else str(value)) or "none"
