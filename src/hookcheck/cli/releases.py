"""The command that lists the releases of torch that hookcheck runs on."""

from __future__ import annotations

from pathlib import Path

from hookcheck.cli.frame import REPORTS, command
from hookcheck.cli.output import fields, show, table

_SCHEMAS = [
    fields(
        torch=("string", "the release"),
        python=("string", "the Python that it is run with"),
        pins=("array", "what its environment needs beside it"),
        record=("string", "its record on cpu; empty where there is none"),
    )
]


@command("releases", _SCHEMAS)
@REPORTS
def list_releases(reports: Path, shape: str) -> None:
    """List the releases of torch that hookcheck runs on, each with its Python, pins and record."""
    from hookcheck.record.model import record_name
    from hookcheck.releases import releases

    def path(torch: str) -> str:
        record = reports / "records" / record_name(torch, "cpu")
        return str(record) if record.exists() else ""

    rows = [
        {"torch": each.torch, "python": each.python, "pins": list(each.pins), "record": path(each.torch)}
        for each in releases()
    ]
    shown = [{**row, "pins": ", ".join(row["pins"])} for row in rows]
    show(rows, shape, lambda: table(shown, ("torch", "python", "pins", "record")))
