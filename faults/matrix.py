"""Which clauses catch which fault? What ``hookcheck kill-matrix`` prints, measured on the installed torch."""

from __future__ import annotations

from collections.abc import Iterator

from hookcheck.contract.clause import CLAUSES
from hookcheck.programs.check import NotOffered, NotRun
from hookcheck.programs.program import Program, programs

from .engine import Fault
from .on_networks import FAULTS as ON_NETWORKS
from .on_networks import OFFERED, catching
from .on_programs import FAULTS, OUT_OF_REACH, offered, soundly, wrong


def faults() -> list[Fault]:
    """All faults that this torch has the code for."""
    return [*OFFERED, *(fault for fault in FAULTS if offered(fault))]


def caught_by(fault: Fault) -> tuple[str, ...]:
    """The clauses that catch it: on networks, with any of its hook kinds, or of the chapters that it names."""
    if fault in OFFERED:
        return tuple(sorted({clause for kind in fault.kinds for clause in catching(fault, kind)}))
    return tuple(_programs_that_catch(fault))


def _programs_that_catch(fault: Fault) -> Iterator[str]:
    chapters = dict.fromkeys(c.chapter for c in map(CLAUSES.get, fault.clauses) if isinstance(c, Program))
    for program in (p for chapter in chapters for p in programs(chapter)):
        if program.alone and program.id not in fault.clauses:
            continue  # what can end the process is not run in this one
        try:
            before = soundly(program.id)
            with fault.patch():
                if wrong(program) - before:
                    yield program.id
        except (NotOffered, NotRun):
            continue


def questioned(caught: set[str]) -> dict[str, str]:
    """The clauses that catch nothing, each with why that may be so."""
    named = {id for fault in (*ON_NETWORKS, *FAULTS) for id in fault.clauses}
    lacking = dict.fromkeys(named, "what it is about is not on this machine, or not in this torch")
    return {id: {**lacking, **OUT_OF_REACH}.get(id, "no fault of it is known") for id in CLAUSES if id not in caught}
