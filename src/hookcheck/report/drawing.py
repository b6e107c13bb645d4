"""Where the report comes from, and where it goes: from whatever records lie in a folder, as a site and a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from hookcheck.collector import paused
from hookcheck.contract.ledger import Entry
from hookcheck.record.errors import UnwritableReports
from hookcheck.report.archive import UnreadableFile, read_folder
from hookcheck.report.causes import Cause
from hookcheck.report.markdown import markdown
from hookcheck.report.site import site
from hookcheck.report.view import SiteView


def report(
    records: Path,
    out: Path,
    entries: Iterable[Entry] = (),
    reproduce: Callable[[Cause], str] = lambda cause: "",
    tell: Callable[[UnreadableFile], None] = lambda fault: None,
    say: Callable[[str], None] = lambda doing: None,
) -> tuple[Path, Path]:
    """Draw the records in the folder ``records`` as ``site/`` and ``compatibility.md`` in ``out``; both paths.

    ``entries`` are those of the ledger, and ``reproduce`` gives the script of a cause, or an empty text. A file that is
    no sound record is listed in the report and given to ``tell``; the others are drawn. ``say`` is told of each file
    that is read and written. Pages of an earlier drawing
    that no record calls for any more are removed. Raises `NoRecords` where there is no file of records, and
    `UnwritableReports` where ``out`` cannot be written.
    """
    front, summary = out / "site" / "index.html", out / "compatibility.md"
    with paused():
        faults = _draw(records, out, summary, entries, reproduce, say)
    for fault in faults:
        tell(fault)
    return front, summary


def _draw(
    records: Path,
    out: Path,
    summary: Path,
    entries: Iterable[Entry],
    reproduce: Callable[[Cause], str],
    say: Callable[[str], None],
) -> tuple[UnreadableFile, ...]:
    archive = read_folder(records, say)
    view = SiteView(archive, {entry.id: entry for entry in entries}, reproduce)
    try:
        written = set()
        for address, text in site(view):
            say(f"drawing {address}")
            written.add(_write(out / "site" / address, text))
        for page in set((out / "site").rglob("*.html")) - written:
            page.unlink()
        _write(summary, markdown(view))
    except OSError as error:
        raise UnwritableReports(out, error) from None
    return archive.faults


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Observed texts come from any torch; what UTF-8 cannot say is spelled out.
    path.write_bytes(text.encode("utf-8", errors="backslashreplace"))
    return path
