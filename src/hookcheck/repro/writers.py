"""What writes the script of a program: the same for all, but for those whose acts are data, or which run others."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookcheck.contract.ledger import Ledger
    from hookcheck.contract.verdict import Deviation
    from hookcheck.programs.program import Program
    from hookcheck.repro.search import Run

MACHINE, HOSTED, SITUATIONS = "machine", "hosted", "situations"
"""The rooms that write scripts of programs which have more to them than their own source."""

WRITERS: Mapping[str, str] = {
    "SM-01": MACHINE,
    **dict.fromkeys(("HO-03", "HO-04", "HO-07", "HO-09"), HOSTED),
    **dict.fromkeys(("SI-01", "SI-02", "SI-03", "SI-04", "SI-05", "SM-02"), SITUATIONS),
}
"""The programs that one of them writes for, by id; a table of names, since whoever asks may have no torch."""

SECONDS = 180.0
"""So long a script of a program is made shorter."""


def titled_script(
    program: Program,
    device: str | None,
    first: Deviation,
    ledger: Ledger,
    tried: Callable[[int], None] = lambda tried: None,
    seconds: float = SECONDS,
) -> tuple[str, str]:
    """The title and the script of what a program states that is not so.

    It is made shorter for so many ``seconds``, and ``tried`` is told how many scripts were run so far.

    Raises:
        HookcheckError: there is none.
    """
    from hookcheck.repro.choice import executed, executed_alone
    from hookcheck.repro.prepared import prepared
    from hookcheck.repro.search import InTime

    if not program.alone:
        return _titled(program, device, first, ledger, InTime(executed, seconds, tried))
    with prepared() as run:
        title, script = _titled(program, device, first, ledger, InTime(run, seconds, tried))
    if executed_alone(script)[0] == 1:
        return title, script
    return _titled(program, device, first, ledger, InTime(executed_alone, seconds, tried))  # as a copy it is another


def _titled(program: Program, device: str | None, first: Deviation, ledger: Ledger, run: Run) -> tuple[str, str]:
    from hookcheck.repro.hosted import hosted_script
    from hookcheck.repro.machine import machine_script
    from hookcheck.repro.program import program_script
    from hookcheck.repro.situations.script import situation_script
    from hookcheck.repro.words import LONGEST_TITLE, title_of_program

    fact, writer = first.subject, WRITERS.get(program.id)
    title = title_of_program(program, first)
    if writer == SITUATIONS:
        title, script = situation_script(program, fact, ledger, device or "cpu")
    elif writer == MACHINE:
        title, script = machine_script(program, device, fact, run)
    elif writer == HOSTED:
        title, script = hosted_script(program, device, fact, run)
    else:
        script = program_script(program, device, fact, run)
    return textwrap.shorten(title, LONGEST_TITLE, placeholder=" …"), script
