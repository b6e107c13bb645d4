"""What writes the script of a program: the same for all, but for those whose acts are data, or other programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import Deviation
from hookcheck.programs.program import Program
from hookcheck.repro.choice import executed, executed_alone
from hookcheck.repro.hosted import HOSTS, hosted_script
from hookcheck.repro.machine import machine_script
from hookcheck.repro.program import Run, program_script
from hookcheck.repro.situations.script import reduces, situation_script

Writer = Callable[[Program, "str | None", str, Run], "tuple[str, str]"]
"""Gives title and script of a fact of a program, on a device, as a run of it tells."""

WRITERS: Mapping[str, Writer] = {"SM-01": machine_script, **dict.fromkeys(HOSTS, hosted_script)}
"""The programs that have a writer of their own, by id."""


def has_own_writer(program: Program) -> bool:
    """Whether the script of a program is not of its own source: it is about generated acts, or other programs."""
    return reduces(program) or program.id in WRITERS


def titled_script(program: Program, device: str | None, first: Deviation, ledger: Ledger) -> tuple[str, str]:
    """The title and the script of what a program states that is not so.

    Raises:
        HookcheckError: there is none.
    """
    run = executed_alone if program.alone else executed
    writer = WRITERS.get(program.id)
    if reduces(program):
        title, script = situation_script(program, first.subject, ledger, device or "cpu")
    elif writer:
        title, script = writer(program, device, first.subject, run)
    else:
        title = f"{program.chapter}: {first.subject}: {first.observed} instead of {first.expected}"
        script = program_script(program, device, first.subject, run)
    return title[:120], script
