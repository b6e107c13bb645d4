"""The command that makes one record of several: shards of a run, runs of a part, runs on several machines."""

from __future__ import annotations

from pathlib import Path

import click

from hookcheck.cli.frame import DEVIATES, FINE, command
from hookcheck.cli.output import fields, show, table

_SCHEMAS = [
    fields(
        record=("string", "the record that was written"),
        torch=("string", "the version of torch"),
        device=("string", "the device"),
        records=("integer", "how many records it was made of"),
        cases=("integer", "how many cases it holds"),
        complete=("boolean", "whether nothing is missing for which a run was stopped"),
        differing=("array", "the cases that came out differently in two of the records"),
    )
]

SHOWN = 5
"""How many of the cases that came out differently are listed for people."""


@command("merge", _SCHEMAS)
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--into", "folder", required=True, type=click.Path(path_type=Path), metavar="FOLDER",
    help="Folder for the merged record, which is called after its torch and device.",
)  # fmt: skip
def merge(records: tuple[Path, ...], folder: Path, shape: str) -> int:
    """Make one record of several of one torch and device: shards of a run, parts, several machines.

    A case that several hold keeps the result that weighs most. Those that came out differently are listed, and make the
    exit code 1. Records of different torches, devices, versions of hookcheck, corpora or clauses are refused.
    """
    from hookcheck.record.joining import join
    from hookcheck.record.reading import read
    from hookcheck.record.writing import write

    joined, differing = join([(path, read(path)) for path in records])
    path = write(joined, folder)
    of_cases = [f"{case.family} {case.topology} {case.kind}" for case in differing]
    row = {
        "record": str(path),
        "torch": joined.header.torch.version,
        "device": joined.header.device,
        "records": len(records),
        "cases": len(joined.cases),
        "complete": joined.footer.complete,
        "differing": of_cases,
    }
    more = [f"and {len(of_cases) - SHOWN} more (--format json lists all)"] if len(of_cases) > SHOWN else []
    shown = {**row, "differing": "\n".join([*of_cases[:SHOWN], *more]) or "none"}
    show([row], shape, lambda: table([shown], ("record", "records", "cases", "complete", "differing")))
    return DEVIATES if differing else FINE
