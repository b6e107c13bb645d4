"""The report in a repository: a summary of one screen as Markdown, with links into the site."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hookcheck.report import address
from hookcheck.report.headlines import LEADING, headlines, tally
from hookcheck.report.scopes import title
from hookcheck.report.standing import says_something
from hookcheck.report.view import SiteView, changes

RELEASES = 8
"""How many releases the table shows, the newest; the site has all."""


def markdown(view: SiteView) -> str:
    """The summary of ``view``."""
    return "\n".join(_lines(view)) + "\n"


def _lines(view: SiteView) -> Iterator[str]:
    yield from ("# Do PyTorch's hooks keep their promises?", "")
    for fault in view.archive.faults:
        yield f"- **A file that could not be read:** {_text(fault.file)}: {_text(fault.text)}"
    if not view.archive.runs:
        return
    before = view.archive.previous(0)
    for line in headlines(view, None if before is None else changes(view.archive.compare(before, 0, view.varying))):
        link = f" ([more](site/{line.link}))" if line.link else ""
        yield f"- {_text(line.text)}{link}"
    kinds = [kind for kind in LEADING if kind in view.archive.kinds]
    yield from ("", *_row(["torch", *(f"{title(kind).lower()} that deviate" for kind in kinds), "run"]))
    yield "|" + " --- |" * (len(kinds) + 2)
    for place, run in list(enumerate(view.archive.runs))[:RELEASES]:
        cells = [f"[{_text(view.name(run))}](site/{address.of_run(run)})"]
        for kind in kinds:
            shown = [view.verdicts[clause.id, kind][place] for clause in view.clauses_of[kind]]
            judged = [verdict for verdict in shown if says_something(verdict)]
            cells.append(tally(judged) or ("none" if judged else "not judged"))
        cells.append("complete" if run.footer.complete else f"cut short: {_text(run.footer.stopped)}")
        yield from _row(cells)
    if view.archive.runs[RELEASES:]:
        yield from ("", f"And {len(view.archive.runs) - RELEASES} older: [all releases](site/releases.html).")
    yield from (
        "",
        "All of it: [the front page](site/index.html), [promises](site/clauses.html), [hook kinds](site/kinds.html), "
        "[any two releases](site/compare.html), [claims of tutorials](site/claims.html).",
    )


def _row(cells: Sequence[str]) -> list[str]:
    """A row of a table, of cells that are Markdown already."""
    return [f"| {' | '.join(cells)} |"]


def _text(text: str) -> str:
    """``text`` so that it stays text: on one line, with nothing that Markdown or HTML would take for its own."""
    flat = " ".join(text.split())
    for character in "\\`*_[]|~":
        flat = flat.replace(character, f"\\{character}")
    return flat.replace("&", "&amp;").replace("<", "&lt;")
