"""Does the ledger say of every known fault where it was seen, and of no other release?

``known_bugs.csv`` holds what small scripts, written before there was a clause, showed on 24 releases: where each fault
was seen and where torch was right; a release in neither column lacks the API.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.version import Version

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import load

RELEASES = [
    "1.7.1", "1.8.0", "1.8.1", "1.9.1", "1.10.2", "1.11.0", "1.12.1", "1.13.1", "2.0.1", "2.1.2",
    "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1",
    "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0",
]  # fmt: skip
with (Path(__file__).parent / "known_bugs.csv").open(encoding="utf-8") as _file:
    BUGS = {row["id"]: row for row in csv.DictReader(_file)}
LEDGER = load()

SHARPER = {
    "ST-28": "the program counts the references that were lost; whether that crashes is a matter of chance",
    "BL-10": "the program has the threads meet between reading and writing; left to chance it is rare",
    "BL-07": "the program looks before the garbage collector comes, which frees the tensors on 2.0.1 as well",
}
"""Faults that a program shows on releases where the script did not, and why; it must show them where it did."""

NOT_CONFIRMED = {
    "CK-17",
    "CK-15",
    "OP-18",
    "TC-10",
    "TC-15",
}
"""Faults that scripts showed on 2.1.2 alone of the later releases; with NumPy below 2 the programs hold there."""


def spread(text: str) -> set[str]:
    """The releases of a list of ranges: ``1.11.0, 2.1.2–2.8.0``."""
    releases: set[str] = set()
    for part in filter(None, map(str.strip, text.replace("–", "-").strip(" -").split(","))):
        first, _, last = part.partition("-")
        releases.update(RELEASES[RELEASES.index(first) : RELEASES.index(last or first) + 1])
    return releases


def explained(id: str, releases: Iterable[str]) -> set[str]:
    """Those of ``releases`` on which an entry of the ledger names the clause."""
    entries = [entry for entry in LEDGER if id in entry.clauses]
    return {release for release in releases if any(entry.torch.contains(release) for entry in entries)}


def offered(id: str, releases: Iterable[str]) -> set[str]:
    """Those of ``releases`` that have what the clause is about."""
    return {release for release in releases if Version(release) >= Version(CLAUSES[id].since)}


def test_the_ranges_are_read() -> None:
    assert spread("–") == set()
    assert spread("1.11.0, 2.1.2–2.3.1") == {"1.11.0", "2.1.2", "2.2.2", "2.3.1"}


def test_the_table_is_whole() -> None:
    assert len(BUGS) == 116
    assert {row["kind"] for row in BUGS.values()} == {"bug", "regression", "surprise", "documented", "change", "holds"}
    assert SHARPER.keys() <= BUGS.keys()


@pytest.mark.parametrize("id", BUGS)
def test_a_known_fault_deviates_where_it_was_seen(id: str) -> None:
    seen = offered(id, spread(BUGS[id]["seen"]) - ({"2.1.2"} if id in NOT_CONFIRMED else set()))
    assert explained(id, seen) == seen


@pytest.mark.parametrize("id", [id for id in BUGS if id not in SHARPER])
def test_a_known_fault_does_not_deviate_elsewhere(id: str) -> None:
    assert explained(id, spread(BUGS[id]["right"])) == set()
