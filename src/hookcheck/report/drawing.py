"""Where do reports come from? From whatever records lie in a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hookcheck.collector import paused
from hookcheck.errors import HookcheckError
from hookcheck.record.errors import RecordError, UnwritableReports
from hookcheck.record.model import Record
from hookcheck.record.reading import read, record_files
from hookcheck.report.html import html
from hookcheck.report.markdown import markdown
from hookcheck.report.page import Fault, Ledger, page


class NoRecords(HookcheckError):
    """A folder holds no record."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is where records were looked for."""
        super().__init__(f"there is no record in {folder}; run `pytest conformance/` first")


def report(
    records: Path, out: Path, ledger: Ledger | None = None, tell: Callable[[Fault], None] = lambda fault: None
) -> tuple[Path, Path]:
    """Draw the records in the folder ``records`` as ``index.html`` and ``compatibility.md`` in ``out``; their paths.

    A file that is no sound record is listed in the report and given to ``tell``; the others are drawn. Raises
    `NoRecords` where there is no file of records, and `UnwritableReports` where ``out`` cannot be written.
    """
    with paused():
        sound, faults = read_folder(records)
        drawn = page(sound, faults, ledger)
        texts = html(drawn), markdown(drawn)
    for fault in faults:
        tell(fault)
    paths = out / "index.html", out / "compatibility.md"
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts):
            # Observed texts come from any torch; what UTF-8 cannot say is spelled out.
            path.write_bytes(text.encode("utf-8", errors="backslashreplace"))
    except OSError as fault:
        raise UnwritableReports(out, fault) from None
    return paths


def read_folder(folder: Path) -> tuple[list[Record], list[Fault]]:
    """The records in ``folder``, one for each build of torch, label and device, and the files that are none.

    Raises `NoRecords` where there are no such files.
    """
    paths = record_files(folder)
    if not paths:
        raise NoRecords(folder)
    drawn: dict[tuple[str, str], tuple[Path, Record]] = {}
    faults: list[Fault] = []
    for path in paths:
        try:
            record = read(path)
        except RecordError as fault:
            line = "" if fault.line is None else f"line {fault.line}: "
            faults.append(Fault(path.name, f"{line}{fault.cause}; {fault.remedy}"))
            continue
        key = record.header.build, record.header.device
        first, _ = drawn.setdefault(key, (path, record))
        if first != path:
            cause = f"{first.name} records torch {' '.join(key)} too, and is drawn"
            faults.append(Fault(path.name, f"{cause}; remove one of them, or run one with --label"))
    return [record for _, record in drawn.values()], faults
