"""How is a verdict shown? One symbol with one word, the same in HTML, Markdown and on a terminal.

Colour never carries meaning alone. A deviation that the ledger explains is told from one that it does not, and a pin
is *changed*, where a promise *deviates*.
"""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.contract.clause import PIN
from hookcheck.contract.verdict import CONFORMS, CRASHED, DEVIATES, NOT_OFFERED, NOT_RUN, TIMED_OUT, Cell


@dataclass(frozen=True)
class Mark:
    """``plain`` stands for ``symbol`` where only ASCII can be written; ``style`` is a CSS class and a rich style."""

    symbol: str
    plain: str
    word: str
    meaning: str
    style: str
    colour: str


UNEXPLAINED = Mark("✗", "x", "deviates", "deviates from a promise, and no ledger entry explains it", "bad", "bold red")
CHANGED = Mark("≠", "#", "changed", "undocumented behaviour changed, and no ledger entry explains it", "bad", "magenta")
EXPLAINED = Mark("~", "~", "known", "deviates, as an entry of the ledger says", "known", "yellow")
CONFORMING = Mark("✓", "+", "conforms", "everything that was judged is as expected", "good", "green")
CRASH = Mark("!", "!", "crashed", "a case ended the process; nothing is said about the others", "bad", "bold red")
TIMEOUT = Mark("T", "T", "timed out", "a case took too long; nothing is said about the others", "bad", "bold red")
MISSING = Mark("–", "-", "not run", "not run, or nothing to judge; this is no pass", "none", "dim")
ABSENT = Mark(
    "·", ".", "not offered", "this torch lacks the hook kind, or what the networks are made of", "none", "dim"
)

MARKS = (CRASH, TIMEOUT, UNEXPLAINED, CHANGED, EXPLAINED, CONFORMING, MISSING, ABSENT)
"""All marks, the one that asks for most attention first."""

ALARMING = (CRASH, TIMEOUT, UNEXPLAINED, CHANGED)
"""The marks of what nobody expects."""

UNJUDGED = (MISSING, ABSENT)
"""The marks of what nothing is said about."""

_BY_VERDICT = {
    CRASHED: CRASH,
    TIMED_OUT: TIMEOUT,
    CONFORMS: CONFORMING,
    NOT_RUN: MISSING,
    NOT_OFFERED: ABSENT,
}


def mark(cell: Cell, rank: str) -> Mark:
    """The mark of ``cell``, whose clause has the class ``rank``."""
    if cell.verdict != DEVIATES:
        return _BY_VERDICT[cell.verdict]
    if not cell.unexplained:
        return EXPLAINED
    return CHANGED if rank == PIN else UNEXPLAINED
