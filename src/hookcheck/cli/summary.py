"""The command that tells one record in a few lines."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from hookcheck.cli.frame import DEVIATES, FINE, REPORTS, command
from hookcheck.cli.output import fields, show, width
from hookcheck.cli.records import record_path

_SCHEMAS = [
    fields(
        record=("string", "the file"),
        torch=("string", "the version of torch"),
        device=("string", "the device"),
        made=("string", "when the run began, in UTC"),
        hookcheck=("string", "the version that made it"),
        complete=("boolean", "whether the run went to its end"),
        stopped=("string", "why not; empty where it did"),
        verdicts=("object", "how many cells have each verdict"),
        counts=("object", "how many cases had each outcome"),
        explored=("integer", "how many new topologies were examined as well"),
        new=("array", "the causes that no ledger entry explains: clause, gap, cases, families, kinds, topology"),
    )
]


@command("summary", _SCHEMAS, shapes=("pretty", "markdown", "json"))
@click.argument("record", metavar="RECORD")
@REPORTS
def summary(record: str, reports: Path, shape: str) -> int:
    """Tell what one record says: a file, or the version of torch that it is of. Exit code 1 if anything is new."""
    from hookcheck.record.reading import read
    from hookcheck.report.step import markdown_summary
    from hookcheck.report.summary import new_causes
    from hookcheck.report.summary import summary as sentences

    path = record_path(record, reports)
    made = read(path)
    new, verdicts = new_causes(made), [cell.verdict for cell in made.cells()]
    row = {
        "record": str(path),
        "torch": made.header.torch.version,
        "device": made.header.device,
        "made": made.header.started,
        "hookcheck": made.header.hookcheck,
        "complete": made.footer.complete,
        "stopped": made.footer.stopped,
        "verdicts": {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
        "counts": dict(made.footer.counts),
        "explored": made.footer.explored,
        "new": [asdict(cause) for cause in new],
    }
    text = markdown_summary(made) if shape == "markdown" else "\n".join(sentences(made, width()))
    show([row], "json" if shape == "json" else "pretty", lambda: text)
    return DEVIATES if new else FINE
