"""Does the kill matrix tell what the faults' own tests see?"""

from __future__ import annotations

import pytest
from faults.engine import Fault
from faults.matrix import caught_by, faults, questioned
from faults.on_networks import OFFERED

from hookcheck.contract.clause import CLAUSES

FIRST, LAST = OFFERED[0], faults()[-1]
"""A fault on networks, and one on programs."""


@pytest.mark.parametrize("fault", [FIRST, LAST], ids=lambda fault: fault.what)
def test_a_row_holds_the_clauses_that_the_fault_names(fault: Fault) -> None:
    assert set(fault.clauses) <= set(caught_by(fault))


def test_what_catches_something_is_not_questioned() -> None:
    assert questioned(set(CLAUSES)) == {}
    assert FIRST.clauses[0] not in questioned({FIRST.clauses[0]})


def test_what_catches_nothing_is_questioned_with_a_reason() -> None:
    reasons = questioned(set())
    assert reasons.keys() == CLAUSES.keys()
    assert all(reasons.values())
    assert len(set(reasons.values())) > 1
