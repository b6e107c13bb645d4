"""The command that draws the report."""

from __future__ import annotations

from pathlib import Path

import click

from hookcheck.cli.frame import DEVIATES, FINE, command
from hookcheck.cli.output import fields, show

_SCHEMAS = [fields(file=("string", "a file that was written"))]


@command("report", _SCHEMAS)
@click.option("--records", type=click.Path(path_type=Path), default="reports/records", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default="reports", show_default=True)
def draw_report(records: Path, output: Path, shape: str) -> int:
    """Draw site/ and compatibility.md from a folder of records; exit code 1 if a file is no sound record."""
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.contract.ledger import load
    from hookcheck.report.drawing import report
    from hookcheck.run.reproduction import reproduction

    faults: list[str] = []
    paths = report(records, output, load(), reproduction, lambda f: faults.append(f"{f.file}: {f.text}"))
    rows = [{"file": str(path)} for path in paths]
    show(rows, shape, lambda: "\n".join(row["file"] for row in rows))
    for fault in faults:
        click.echo(f"hookcheck: left out: {fault}", err=True)
    return DEVIATES if faults else FINE
