"""Does the kill matrix tell what the faults' own tests see, and what the ledger would excuse?"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
from faults import matrix, on_programs, samples
from faults.engine import Fault
from faults.matrix import caught, faults, questioned
from faults.on_networks import OFFERED, catching, excusing, showing, until_caught
from faults.samples import Shown

from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import Ledger

FIRST, LAST = OFFERED[0], faults()[-1]
"""A fault on networks, and one on programs."""

NEW = Shown("GI-01", "aa", "net#0", "wrong values", None)
KNOWN = NEW._replace(clause="BW-07", entry="some-entry")


@pytest.mark.parametrize(
    ("shown", "clauses", "entries"),
    [
        ([], set(), set()),
        ([[]], set(), set()),
        ([[NEW]], {"GI-01"}, set()),
        ([[KNOWN]], set(), {"some-entry"}),
        ([[KNOWN, KNOWN._replace(entry="another")]], set(), {"some-entry", "another"}),
        ([[NEW, KNOWN]], {"GI-01"}, set()),
        ([[NEW], [KNOWN]], {"GI-01"}, {"some-entry"}),
    ],
)
def test_a_fault_is_excused_where_all_that_it_changes_is_explained(
    shown: list[list[Shown]], clauses: set[str], entries: set[str]
) -> None:
    changes = list(map(frozenset, shown))
    assert (catching(changes), excusing(changes)) == (clauses, entries)


@pytest.mark.parametrize("fault", [FIRST, LAST], ids=lambda fault: fault.what)
def test_a_row_holds_the_clauses_that_the_fault_names(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "showing", until_caught)  # all samples take minutes
    row = caught(fault)
    assert set(fault.clauses) <= set(row.clauses)
    assert row.entries == ()


GAPS = ("wrong values", "wrong shape", "parameter gradients mixed in", "not fired", "fired too often")


def wide(**cells: tuple[str, ...]) -> Ledger:
    """A ledger with one entry, which explains whatever is seen in these cells."""
    some = next(entry for entry in samples.known().entries if not entry.says)
    return Ledger((replace(some, id="wide", instead=GAPS, when=(), **cells),))


def test_an_entry_that_explains_too_much_of_programs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = wide(clauses=LAST.clauses, families=("program",), kinds=CLAUSES[LAST.clauses[0]].kinds)
    monkeypatch.setattr(on_programs, "known", lambda: ledger)
    row = caught(LAST)
    assert (set(row.clauses).isdisjoint(LAST.clauses), row.entries) == (True, ("wide",))


def test_an_entry_that_explains_too_much_of_networks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = wide(clauses=tuple(CLAUSES), families=(), kinds=("full_backward",))
    monkeypatch.setattr(samples, "known", lambda: ledger)
    samples.sound.cache_clear()
    try:
        assert excusing(islice(showing(FIRST, "full_backward"), 5)) == {"wide"}
    finally:
        samples.sound.cache_clear()


def test_what_catches_something_is_not_questioned() -> None:
    assert questioned(set(CLAUSES)) == {}
    assert FIRST.clauses[0] not in questioned({FIRST.clauses[0]})


def test_what_catches_nothing_is_questioned_with_a_reason() -> None:
    reasons = questioned(set())
    assert reasons.keys() == CLAUSES.keys()
    assert all(reasons.values())
    assert len(set(reasons.values())) > 1
