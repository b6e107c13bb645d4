"""What is said at the end of a run beside its summary, and where all of it goes."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Iterable
from pathlib import Path

from hookcheck.contract.ledger import Ledger
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS
from hookcheck.record.model import Record


def compared(baselines: Iterable[tuple[Path, Record]], made: Record, width: int) -> list[str]:
    """What is new against the baselines, in lines of ``width``; a run of few cells against what they were."""
    from hookcheck.run.baseline import against

    told = (against(path, before, made) for path, before in baselines)
    return [line for texts in told for text in texts for line in textwrap.wrap(text, width, subsequent_indent="  ")]


def tables(made: Record, width: int, colours: bool) -> str:
    """The tables of a run, for people who ask for all of it."""
    from rich.console import Console

    from hookcheck.report.terminal import print_summary

    text = io.StringIO()
    print_summary(made, Console(file=text, width=width, force_terminal=colours, highlight=False))
    return text.getvalue()


def idle(ledger: Ledger, made: Record) -> list[str]:
    """What is to be said of what entries claim and a whole run does not show."""
    return [
        f"ledger: {found.entry.id} says that {', '.join(found.entry.clauses)} deviate {_how(found.claim)}, and "
        f"{found.family or 'no family'} {'does not show' if found.family else 'shows'} it: narrow the entry, or remove "
        "it if the deviation is gone"
        for found in ledger.idle(made.cases)
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
