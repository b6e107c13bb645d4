"""The command that draws a badge of one record."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import REPORTS, command
from hookcheck.cli.output import echo, fields
from hookcheck.cli.records import record_path

_SCHEMAS = [
    fields(
        schemaVersion=("integer", "1: the schema of a badge's endpoint, as shields.io reads it"),
        label=("string", "the left half"),
        message=("string", "the right half"),
        color=("string", "the colour of the right half"),
    )
]


@command("badge", _SCHEMAS, shapes=("svg", "json"), piped="svg")
@click.argument("record", metavar="RECORD", shell_complete=completing.records)
@click.option("--label", default="hooks", show_default=True, help="The left half.")
@REPORTS
def badge(record: str, label: str, reports: Path, shape: str) -> None:
    """Draw a badge of a record (a file, or a version of torch): SVG, or the JSON of an endpoint for shields.io.

    `hookcheck badge 2.13.0 > badge.svg`
    """
    from hookcheck.record.reading import read
    from hookcheck.report.badge import message, svg

    text, colour = message(read(record_path(record, reports)))
    endpoint = {"schemaVersion": 1, "label": label, "message": text, "color": colour}
    echo(json.dumps(endpoint) if shape == "json" else svg(label, text, colour), nl=shape == "json")
