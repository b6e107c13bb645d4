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
        error=(["string", "null"], "the name of what is wrong with it"),
        message=(["string", "null"], "what is wrong where, and what to do"),
    )
]


@command("validate", _SCHEMAS)
@click.argument("record", type=click.Path(path_type=Path), nargs=-1, required=True)
def validate(record: tuple[Path, ...], shape: str) -> int:
    """Check that files are sound records; exit code 1 if any is not."""
    rows = [_validated(path) for path in record]
    show(rows, shape, lambda: "\n".join(f"{r['file']}: valid" if r["valid"] else r["message"] for r in rows))
    return FINE if all(row["valid"] for row in rows) else DEVIATES


def _validated(path: Path) -> Row:
    from hookcheck.record.errors import RecordError
    from hookcheck.record.reading import read

    try:
        read(path)
    except RecordError as error:
        name = type(error).__name__
        return {"file": str(path), "valid": False, "error": name, "message": f"{name}: {' '.join(str(error).split())}"}
    return {"file": str(path), "valid": True, "error": None, "message": None}
