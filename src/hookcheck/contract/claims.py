"""What is the answer to a claim, and on which releases of torch? The ledger says where its facts are refuted.

An entry that names facts refutes those; one that names none refutes all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from packaging.version import Version

from hookcheck.contract.clause import CLAIM, CLAUSES, Clause
from hookcheck.contract.ledger import Entry

HOLDS, REFUTED, PARTLY = "holds", "refuted", "partly"


@dataclass(frozen=True)
class Answer:
    """The answer to a claim on the releases in the version specifier ``torch``: ``holds``, ``refuted``, or ``partly``
    where some of its facts are refuted."""

    claim: Clause
    answer: str
    torch: str


def claims() -> list[Clause]:
    """The clauses that are claims, in the order of declaration."""
    return [clause for clause in CLAUSES.values() if clause.rank == CLAIM]


def answers(claim: Clause, ledger: Iterable[Entry]) -> list[Answer]:
    """The answers to a claim, the oldest releases first.

    Specifiers of entries are made of ``>=`` and ``<``, so an answer can only change at a release that one names.
    """
    entries = [entry for entry in ledger if claim.id in entry.clauses]
    named = {Version(claim.since), *(Version(s.version) for entry in entries for s in entry.torch)}
    releases = sorted(release for release in named if release >= Version(claim.since))
    said = [(release, _answer([e for e in entries if e.torch.contains(release)])) for release in releases]
    firsts = [(next(same)[0], answer) for answer, same in groupby(said, key=lambda pair: pair[1])]
    ends = [f",<{release}" for release, _ in firsts[1:]] + [""]
    return [Answer(claim, answer, f">={release}{end}") for (release, answer), end in zip(firsts, ends)]


def _answer(entries: list[Entry]) -> str:
    """What the entries that apply to one release come to."""
    if not entries:
        return HOLDS
    return PARTLY if all("fact" in dict(entry.when) for entry in entries) else REFUTED
