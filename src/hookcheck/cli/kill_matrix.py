"""The command that says which clauses catch which faults, and what the ledger excuses."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hookcheck.cli.frame import command, installed_torch
from hookcheck.cli.output import Row, fields, show, table, watched
from hookcheck.errors import HookcheckError

if TYPE_CHECKING:
    from rich.console import RenderableType

_SCHEMAS = [
    fields(
        fault=("string", "how the hook engine is wrong; empty for a clause that catches no fault, and an entry"),
        clauses=("array", "the clauses that catch it, by what the ledger does not explain; or the one clause"),
        reason=("string", "why a clause catches none; empty for a fault or an entry"),
        entry=("string", "an entry of the ledger that applies to this torch; empty for a fault or a clause"),
        excused=("array", "the faults that the entry excuses"),
    )
]


@command("kill-matrix", _SCHEMAS)
def kill_matrix(shape: str) -> None:
    """Put faults into torch's hook code, one after the other, and tell which clauses catch each, and what the ledger
    excuses.

    The faults are in a clone of the repository, in faults/. A fault is caught by what the ledger does not explain; an
    entry of the ledger excuses it where it explains all that the fault changes on some network or in some program.
    Clauses that catch none, and entries that excuse some, are listed last.
    """
    installed_torch()
    sys.path.insert(0, str(_clone()))
    from importlib import import_module

    matrix = import_module("faults.matrix")

    def rows() -> Iterator[Row]:
        clauses: set[str] = set()
        excused: dict[str, list[str]] = {id: [] for id in matrix.entries()}
        for fault in watched(matrix.faults(), "kill-matrix"):
            with contextlib.redirect_stdout(sys.stderr):  # some programs print
                caught = matrix.caught(fault)
            clauses.update(caught.clauses)
            for id in caught.entries:
                excused[id].append(fault.what)
            yield {**_BLANK, "fault": fault.what, "clauses": list(caught.clauses)}
        for id, reason in matrix.questioned(clauses).items():
            yield {**_BLANK, "clauses": [id], "reason": reason}
        for id, faults in excused.items():
            yield {**_BLANK, "entry": id, "excused": faults}

    def pretty() -> RenderableType:
        from rich.console import Group

        found = list(rows())
        entries = [row for row in found if row["entry"]]
        excusing = [row for row in entries if row["excused"]]
        others = [row for row in found if not row["entry"]]
        total = f"{len(entries)} entries of the ledger, of which {len(excusing)} excuse a fault"
        return Group(
            table(others, ("fault", "clauses", "reason")),
            *([table(excusing, ("entry", "excused"))] if excusing else []),
            total,
        )

    show(rows(), shape, pretty)


_BLANK: Row = {"fault": "", "clauses": [], "reason": "", "entry": "", "excused": []}


def _clone() -> Path:
    """The clone of hookcheck's repository that this is.

    Raises:
        HookcheckError: this is not a clone.
    """
    from hookcheck.suite import conformance_folder

    clone = conformance_folder().parent
    if not (clone / "faults").is_dir():
        raise HookcheckError("the faults are in a clone of hookcheck's repository; run this command there")
    return clone
