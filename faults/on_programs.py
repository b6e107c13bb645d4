"""Faults that programs show, which of their facts each makes wrong, and which of those the ledger would excuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from unittest.mock import patch

import torch

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.finding import Finding
from hookcheck.programs.chapters import clauses_on_hosts
from hookcheck.programs.facts import facts_of
from hookcheck.programs.program import PROGRAM, Program

from . import programs
from .engine import Fault, release
from .samples import known

MODULES = [import_module(f"{programs.__name__}.{m.name}") for m in iter_modules(programs.__path__)]
FAULTS: tuple[Fault, ...] = tuple(fault for module in MODULES for fault in module.FAULTS)
OUT_OF_REACH: dict[str, str] = {
    id: why for module in MODULES for id, why in vars(module).get("OUT_OF_REACH", {}).items()
}
"""Programs that no patch in memory can fail, each with the reason: what they speak of is not written in Python."""


def wrong(program: Program) -> dict[str, Finding]:
    """The facts of the program that are not so, by name."""
    return {fact.name: fact.finding for fact in facts_of(program, "cpu") if fact.finding}


def excuses(program: Program, facts: Mapping[str, Finding]) -> dict[str, str | None]:
    """For each of ``facts`` that are not so, the entry of the ledger that explains it, or None."""
    return {
        name: known().explain(program.id, PROGRAM, program.chapter, finding, {"fact": frozenset({name})})
        for name, finding in facts.items()
    }


@contextmanager
def _on(hosts: tuple[str, ...]) -> Iterator[None]:
    """Of the hosts of modules only those run that are named, if any are: all take ten seconds and more."""
    with ExitStack() as narrowed:
        for table in ("KINDS", "COMPILED"):
            kinds = getattr(clauses_on_hosts, table)
            named = {name: kind for name, kind in kinds.items() if name in hosts}
            narrowed.enter_context(patch.object(clauses_on_hosts, table, named or kinds))
        yield


@cache
def soundly(id: str, hosts: tuple[str, ...] = ()) -> Mapping[str, str | None]:
    """The facts of the program of that id that are not so on an unchanged torch, as `excuses` has them; of those hosts
    alone, if any are named."""
    program = CLAUSES[id]
    assert isinstance(program, Program)
    with _on(hosts):
        return excuses(program, wrong(program))


def changed(program: Program, fault: Fault) -> dict[str, Finding]:
    """The facts of the program that are not so because of ``fault`` alone; those among them that are not so anyway show
    it by what no entry of the ledger says."""
    before = soundly(program.id, fault.hosts)
    with _on(fault.hosts), fault.patch():
        after = wrong(program)
    otherwise = {name for name, entry in excuses(program, after).items() if entry is None and before.get(name)}
    return {name: finding for name, finding in after.items() if name not in before or name in otherwise}


def offered(fault: Fault) -> bool:
    """Whether this torch has what the fault and its clauses are about."""
    return all(release(CLAUSES[id].since) <= release(torch.__version__) for id in fault.clauses) and fault.offered
