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
    """The answer to a claim on the releases ``torch``, the oldest first: ``holds``, ``refuted``, or ``partly`` where
    some of its facts are refuted."""

    claim: Clause
    answer: str
    torch: tuple[str, ...]


def claims() -> list[Clause]:
    """The clauses that are claims, in the order of declaration."""
    return [clause for clause in CLAUSES.values() if clause.rank == CLAIM]


def answers(claim: Clause, ledger: Iterable[Entry], ran: Iterable[str]) -> list[Answer]:
    """The answers to a claim on the releases that the suite ``ran`` on, the oldest releases first.

    Of a release that it was not run on nothing is known, so nothing is said.
    """
    entries = [entry for entry in ledger if claim.id in entry.clauses]
    offered = sorted((release for release in ran if Version(release) >= Version(claim.since)), key=Version)
    said = [(release, _answer([e for e in entries if e.torch.contains(release)])) for release in offered]
    stretches = groupby(said, key=lambda pair: pair[1])
    return [Answer(claim, answer, tuple(release for release, _ in stretch)) for answer, stretch in stretches]


def _answer(entries: list[Entry]) -> str:
    """What the entries that apply to one release come to."""
    if not entries:
        return HOLDS
    return PARTLY if all("fact" in dict(entry.when) for entry in entries) else REFUTED
