"""The command that tells one record in a few lines."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import DEVIATES, FINE, REPORTS, WRONG_INPUT, command
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
        verdicts=("object", "how many cells of what is promised have each verdict"),
        counts=("object", "how many cases had each outcome"),
        explored=("integer", "how many new topologies were examined as well"),
        new=("array", "the causes that no ledger entry explains: clause, gap, cases, families, kinds, topology"),
    )
]


@command("summary", _SCHEMAS, shapes=("pretty", "markdown", "json"))
@click.argument("record", metavar="RECORD", shell_complete=completing.records)
@REPORTS
def summary(record: str, reports: Path, shape: str) -> int:
    """Tell what one record says: a file, or the version of torch that it is of.

    Exit code: 0 nothing is new, 1 something is, 2 that cannot be told, since the run was cut short before anything was.
    """
    from hookcheck.record.reading import read
    from hookcheck.report.step import markdown_summary
    from hookcheck.report.summary import judged_cells, new_causes
    from hookcheck.report.summary import summary as sentences

    path = record_path(record, reports)
    content = read(path)
    new, verdicts = new_causes(content), [cell.verdict for cell in judged_cells(content)]
    row = {
        "record": str(path),
        "torch": content.header.torch.version,
        "device": content.header.device,
        "made": content.header.started,
        "hookcheck": content.header.hookcheck,
        "complete": content.footer.complete,
        "stopped": content.footer.stopped,
        "verdicts": {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
        "counts": dict(content.footer.counts),
        "explored": content.footer.explored,
        "new": [asdict(cause) for cause in new],
    }
    text = markdown_summary(content) if shape == "markdown" else "\n".join(sentences(content, width()))
    show([row], "json" if shape == "json" else "pretty", lambda: text)
    return DEVIATES if new else FINE if content.footer.complete else WRONG_INPUT
