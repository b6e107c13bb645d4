"""Faults that programs show, and which of their facts each makes wrong."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import torch

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.programs.program import Program
from hookcheck.programs.running import facts_of

from . import programs
from .engine import Fault, release

MODULES = [import_module(f"{programs.__name__}.{m.name}") for m in iter_modules(programs.__path__)]
FAULTS: tuple[Fault, ...] = tuple(fault for module in MODULES for fault in module.FAULTS)
OUT_OF_REACH: dict[str, str] = {
    id: why for module in MODULES for id, why in vars(module).get("OUT_OF_REACH", {}).items()
}
"""Programs that no patch in memory can fail, each with the reason: what they speak of is not written in Python."""


def wrong(program: Program) -> frozenset[str]:
    """The facts of the program that are not so."""
    return frozenset(fact.name for fact in facts_of(program, "cpu") if fact.finding)


@cache
def soundly(id: str) -> frozenset[str]:
    """The facts of the program of that id that are not so on a torch that nothing was put into."""
    program = CLAUSES[id]
    assert isinstance(program, Program)
    return wrong(program)


def offered(fault: Fault) -> bool:
    """Whether this torch has what the fault and its clauses are about."""
    return all(release(CLAUSES[id].since) <= release(torch.__version__) for id in fault.clauses) and fault.offered
