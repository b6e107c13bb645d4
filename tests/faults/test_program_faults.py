"""Do programs see what is wrong? Each fault is caught by the programs that it names, and each program by a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from faults.engine import Fault, named
from faults.on_programs import FAULTS, OUT_OF_REACH, changed, excuses, offered
from faults.programs import between, callers, hooks_in_hooks, situations

from hookcheck.contract.clause import CLAUSES
from hookcheck.programs.check import NotOffered, NotRun
from hookcheck.programs.program import Program
from hookcheck.repro.hosted import HOSTS

PROGRAMS = [c for c in CLAUSES.values() if isinstance(c, Program)]

SHOWN_BY_ONE = [
    fault
    for module in (situations, between, callers, hooks_in_hooks)
    for fault in module.FAULTS
    if len(fault.clauses) == 1
]
"""Faults of each of which tests/repro/test_situations.py has a single situation that shows it, excused by no entry. The
program of a clause runs thousands of them, so it is asked for the first fault of each clause alone."""
FIRST = {fault.clauses: fault.what for fault in reversed(SHOWN_BY_ONE)}
LEFT_OUT = {fault.what for fault in SHOWN_BY_ONE} - {*FIRST.values()}


LONG = ("hosts", "situations", "sequences")
"""What faults are of whose programs have thousands of facts."""


def each_fault() -> Iterator[Any]:
    """The faults, of those on what is `LONG` a sample."""
    for fault in FAULTS:
        if fault.what not in LEFT_OUT:
            sampled = (pytest.mark.one_in(8),) if fault.what.startswith(LONG) else ()
            yield pytest.param(fault, id=named(fault), marks=(pytest.mark.slow, *sampled))


@pytest.mark.parametrize("fault", [*each_fault()])
def test_a_fault_is_caught_and_excused_nowhere(fault: Fault) -> None:
    if not offered(fault):
        pytest.skip("this torch lacks what the fault is about")
    for id in fault.clauses:
        program = CLAUSES[id]
        assert isinstance(program, Program)
        try:
            new = changed(program, fault)
        except (NotOffered, NotRun) as reason:
            pytest.skip(str(reason))
        assert new, f"{id} does not see it"
        unseen = [host for host in fault.hosts if not any(name.startswith(f"{host}: ") for name in new)]
        assert not unseen, f"{id} does not see it on these hosts"
        assert None in excuses(program, new).values(), f"the ledger excuses what {id} sees"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_a_program_catches_a_fault(program: Program) -> None:
    caught = [fault.what for fault in FAULTS if program.id in fault.clauses]
    unreachable = program.id in OUT_OF_REACH
    assert caught or unreachable, f"name {program.id} in a fault in faults/programs/ that it catches"
    assert not (caught and unreachable), f"{program.id} catches {caught[0]!r}: take it out of OUT_OF_REACH"


@pytest.mark.parametrize(("clause", "host"), [(id, host) for id, hosts in HOSTS.items() for host in hosts.kinds])
def test_a_host_has_a_fault_that_shows_on_it(clause: str, host: str) -> None:
    assert any(clause in fault.clauses and host in fault.hosts for fault in FAULTS)


def test_faults_have_names_of_their_own() -> None:
    assert len({fault.what for fault in FAULTS}) == len(FAULTS)
