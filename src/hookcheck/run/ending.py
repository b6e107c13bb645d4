"""What is said at the end of a run beside its summary, and where all of it goes."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path

from hookcheck.contract.ledger import Ledger
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS
from hookcheck.record.model import Record


def compared(baselines: Iterable[tuple[Path, Record]], record: Record, written: Path, width: int) -> list[str]:
    """What is new against the baselines, in lines of ``width``; the record of the run was ``written`` there.

    Where the summary tells many new causes, no comparison tells one of them again.
    """
    from hookcheck.report.summary import CAUSES, lines_of, new_causes
    from hookcheck.run.baseline import against

    causes = 0 if new_causes(record)[CAUSES:] else 1
    sentences = (against(path, before, record, written, causes) for path, before in baselines)
    return [line for texts in sentences for line in lines_of(texts, width)]


def tables(record: Record, width: int, colours: bool) -> str:
    """The tables of a run, for people who ask for all of it."""
    from rich.console import Console

    from hookcheck.report.terminal import print_summary

    text = io.StringIO()
    print_summary(record, Console(file=text, width=width, force_terminal=colours, highlight=False))
    return text.getvalue()


def idle(ledger: Ledger, record: Record) -> list[str]:
    """What is to be said of what entries claim and a whole run does not show."""
    return [
        f"ledger: {item.entry.id} says that {', '.join(item.entry.clauses)} deviate {_how(item.claim)}, and "
        f"{item.family or 'no family'} {'does not show' if item.family else 'shows'} it: narrow the entry, or remove "
        "it if the deviation is gone"
        for item in ledger.idle(record.cases)
    ]


def _how(claim: str) -> str:
    return f"under {claim} hooks" if claim in KINDS else f"({claim})"


def check_writable(folder: Path) -> None:
    """Makes sure that records can be written into ``folder``.

    Raises:
        HookcheckError: they cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise HookcheckError(f"the reports folder cannot be written ({error}); choose another with --reports") from None
