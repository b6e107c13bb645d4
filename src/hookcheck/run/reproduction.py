"""The script that a page shows for a cause: of a program its own, of a network none, since that takes too long."""

from __future__ import annotations

from hookcheck.contract.clause import CLAUSES
from hookcheck.programs.program import Program
from hookcheck.report.causes import Cause
from hookcheck.repro.program import program_script


def reproduction(cause: Cause) -> str:
    """The script, which needs torch alone; empty for a network, whose page gives its code and the command.

    Raises:
        HookcheckError: the program needs more than torch.
    """
    clause = CLAUSES.get(cause.clause)
    return program_script(clause) if isinstance(clause, Program) else ""
