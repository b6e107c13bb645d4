"""Do programs see what is wrong? Each fault is caught by the programs that it names, and each program by a fault."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import pytest
import torch

import hookcheck.contract.chapters  # noqa: F401 -- declares the programs
from hookcheck.contract.check import NotOffered, NotRun
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.program import Program
from hookcheck.contract.running import facts_of

from . import programs
from .engine import Fault, release

MODULES = [import_module(f"{programs.__name__}.{m.name}") for m in iter_modules(programs.__path__)]
FAULTS: tuple[Fault, ...] = tuple(fault for module in MODULES for fault in module.FAULTS)
OUT_OF_REACH: dict[str, str] = {
    id: why for module in MODULES for id, why in vars(module).get("OUT_OF_REACH", {}).items()
}
"""Programs that no patch in memory can fail, each with the reason: what they speak of is not written in Python."""

PROGRAMS = [c for c in CLAUSES.values() if isinstance(c, Program)]


def wrong(program: Program) -> frozenset[str]:
    """The facts of the program that are not so."""
    return frozenset(fact.name for fact in facts_of(program, "cpu") if fact.mismatch)


@cache
def soundly(id: str) -> frozenset[str]:
    program = CLAUSES[id]
    assert isinstance(program, Program)
    return wrong(program)


def offered(fault: Fault) -> bool:
    return all(release(CLAUSES[id].since) <= release(torch.__version__) for id in fault.clauses) and fault.offered


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_is_caught(fault: Fault) -> None:
    if not offered(fault):
        pytest.skip("this torch lacks what the fault is about")
    for id in fault.clauses:
        program = CLAUSES[id]
        assert isinstance(program, Program)
        try:
            before = soundly(id)
            with fault.patch():
                found = wrong(program)
        except (NotOffered, NotRun) as reason:
            pytest.skip(str(reason))
        assert found - before, f"{id} does not see it"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_a_program_catches_a_fault(program: Program) -> None:
    caught = [fault.what for fault in FAULTS if program.id in fault.clauses]
    assert bool(caught) is not (program.id in OUT_OF_REACH)


def test_faults_have_names_of_their_own() -> None:
    assert len({fault.what for fault in FAULTS}) == len(FAULTS)
