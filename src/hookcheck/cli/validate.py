"""The command that checks record files."""

from __future__ import annotations

from pathlib import Path

import click

from hookcheck.cli.frame import DEVIATES, FINE, command
from hookcheck.cli.output import Row, fields, show

_SCHEMAS = [
    fields(
        file=("string", "the record"),
        valid=("boolean", "whether it is a sound record"),
        corpus=(["string", "null"], "one word for the networks that it ran: equal words, equal networks"),
        error=(["string", "null"], "the name of what is wrong with it"),
        message=(["string", "null"], "what is wrong where, and what to do"),
    )
]


@command("validate", _SCHEMAS)
@click.argument("record", type=click.Path(path_type=Path), nargs=-1, required=True)
def validate(record: tuple[Path, ...], shape: str) -> int:
    """Check that files are sound records of one corpus; exit code 1 if any is not, or if their corpora differ."""
    rows = [_validated(path) for path in record]
    corpora = {row["corpus"] for row in rows if row["valid"]}
    show(rows, shape, lambda: "\n".join([*map(_line, rows), *_mixture(rows, corpora)]))
    return FINE if all(row["valid"] for row in rows) and len(corpora) <= 1 else DEVIATES


def _line(row: Row) -> str:
    return f"{row['file']}: valid" if row["valid"] else str(row["message"])


def _mixture(rows: list[Row], corpora: set[str]) -> list[str]:
    """What is to be said of records that ran different networks."""
    if len(corpora) <= 1:
        return []
    of_each = {corpus: [row["file"] for row in rows if row["corpus"] == corpus] for corpus in sorted(corpora)}
    groups = "; ".join(f"{corpus}: {', '.join(files)}" for corpus, files in of_each.items())
    return [f"they ran {len(corpora)} different corpora, so run the older ones again ({groups})"]


def _validated(path: Path) -> Row:
    from hookcheck.record.errors import RecordError
    from hookcheck.record.reading import read

    sound = {"file": str(path), "valid": True, "error": None, "message": None}
    try:
        return {**sound, "corpus": read(path).header.plan.corpus_digest}
    except RecordError as error:
        name = type(error).__name__
        message = f"{name}: {' '.join(str(error).split())}"
        return {**sound, "valid": False, "corpus": None, "error": name, "message": message}
