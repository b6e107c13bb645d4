"""How does a record get into its file? Whole or not at all, and the same bytes for the same record."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path

from hookcheck.record.checks import check
from hookcheck.record.errors import UnwritableReports
from hookcheck.record.lines import Line, canonical, case_lines, counterexample_line, footer_line, header_line
from hookcheck.record.model import Record, record_name


def write(record: Record, folder: Path) -> Path:
    """Write ``record`` into ``folder``, in place of an earlier one of the same name; the file's path.

    Raises `UnwritableReports` where the folder cannot be written, and what `check` raises for a record that reading
    it back would refuse.
    """
    header = record.header
    path = folder / record_name(header.torch.version, header.device, header.label)
    check(record.folded(), path)
    text = "".join(canonical(line) + "\n" for line in _lines(record))
    content = _compressed(text.encode("utf-8"))
    unfinished = folder / f".{path.name}.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            path.with_suffix("").unlink(missing_ok=True)  # as it was written before records were compressed
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as fault:
        raise UnwritableReports(folder, fault) from None
    return path


def _compressed(content: bytes) -> bytes:
    """The same bytes for the same content: no time and no name in it, and the header alike on every Python."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()


def _lines(record: Record) -> Iterator[Line]:
    yield header_line(record.header)
    yield from case_lines(record.cases)
    yield from map(counterexample_line, record.counterexamples)
    yield footer_line(record.footer)
