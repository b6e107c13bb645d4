"""What writes the script of a program: the same for all, but for those whose acts are data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import Deviation
from hookcheck.programs.program import Program
from hookcheck.repro.choice import executed, executed_alone
from hookcheck.repro.machine import machine_script
from hookcheck.repro.program import Run, program_script
from hookcheck.repro.situations.script import CHAPTER as SITUATIONS
from hookcheck.repro.situations.script import situation_script

Writer = Callable[[Program, "str | None", str, Run, Ledger], "tuple[str, str]"]
"""Gives title and script of a fact of a program, on a device, as a run of it tells, of the cause that a ledger knows."""

WRITERS: Mapping[str, Writer] = {
    "SM-01": lambda program, device, fact, run, ledger: machine_script(program, device, fact, run),
    SITUATIONS: lambda program, device, fact, run, ledger: situation_script(program, fact, ledger, device or "cpu"),
}
"""The programs that have a writer of their own, by id or chapter."""


def titled_script(program: Program, device: str | None, first: Deviation, ledger: Ledger) -> tuple[str, str]:
    """The title and the script of what a program states that is not so.

    Raises:
        HookcheckError: there is none.
    """
    run = executed_alone if program.alone else executed
    writer = WRITERS.get(program.id) or WRITERS.get(program.chapter)
    if writer:
        title, script = writer(program, device, first.subject, run, ledger)
    else:
        title = f"{program.chapter}: {first.subject}: {first.observed} instead of {first.expected}"
        script = program_script(program, device, first.subject, run)
    return title[:120], script
