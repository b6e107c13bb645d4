"""Which clauses catch which fault, and what would the ledger excuse? What ``hookcheck kill-matrix`` prints, measured on
the installed torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hookcheck.contract.clause import CLAUSES
from hookcheck.programs.check import NotOffered, NotRun
from hookcheck.programs.program import Program, programs

from .engine import Fault
from .on_networks import FAULTS as ON_NETWORKS
from .on_networks import OFFERED, catching, excusing, showing
from .on_programs import FAULTS, OUT_OF_REACH, changed, excuses, offered
from .samples import known


@dataclass(frozen=True)
class Caught:
    """What became of a fault: the ``clauses`` that catch it by what the ledger does not explain, and the ``entries``
    that excuse it somewhere, by explaining all that it changes there."""

    clauses: tuple[str, ...]
    entries: tuple[str, ...]


def faults() -> list[Fault]:
    """All faults that this torch has the code for."""
    return [*OFFERED, *(fault for fault in FAULTS if offered(fault))]


def entries() -> tuple[str, ...]:
    """The ids of all entries of the ledger that apply to this torch."""
    return tuple(entry.id for entry in known().entries)


def caught(fault: Fault) -> Caught:
    """What becomes of a fault on all networks of `samples`, or in the chapters of the clauses that it names."""
    if fault not in OFFERED:
        return _in_programs(fault)
    shown = [changes for kind in fault.kinds for changes in showing(fault, kind)]
    return Caught(tuple(sorted(catching(shown))), tuple(sorted(excusing(shown))))


def _in_programs(fault: Fault) -> Caught:
    clauses: list[str] = []
    explaining: set[str] = set()
    for program in _programs(fault):
        try:
            new = changed(program, fault)
        except (NotOffered, NotRun):
            continue
        entries = excuses(program, new)
        if new and None not in entries.values():
            explaining.update(entry for entry in entries.values() if entry)
        elif new:
            clauses.append(program.id)
    return Caught(tuple(clauses), tuple(sorted(explaining)))


def _programs(fault: Fault) -> Iterator[Program]:
    """Those of the chapters that its clauses stand in; what can end the process is not run in this one."""
    chapters = dict.fromkeys(c.chapter for c in map(CLAUSES.get, fault.clauses) if isinstance(c, Program))
    for program in (p for chapter in chapters for p in programs(chapter)):
        if not program.alone or program.id in fault.clauses:
            yield program


def questioned(caught: set[str]) -> dict[str, str]:
    """The clauses that catch nothing, each with why that may be so."""
    named = {id for fault in (*ON_NETWORKS, *FAULTS) for id in fault.clauses}
    lacking = dict.fromkeys(named, "what it is about is not on this machine, or not in this torch")
    return {id: {**lacking, **OUT_OF_REACH}.get(id, "no fault of it is known") for id in CLAUSES if id not in caught}
