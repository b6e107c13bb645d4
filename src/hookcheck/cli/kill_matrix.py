"""The command that says which clauses catch which faults."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from hookcheck.cli.frame import command, installed_torch
from hookcheck.cli.output import Row, fields, show, table, watched
from hookcheck.errors import HookcheckError

_SCHEMAS = [
    fields(
        fault=("string", "how the hook engine is wrong; empty for a clause that catches no fault"),
        clauses=("array", "the clauses that catch it"),
        reason=("string", "why a clause catches none; empty for a fault"),
    )
]


@command("kill-matrix", _SCHEMAS)
def kill_matrix(shape: str) -> None:
    """Put faults into torch's hook code, one after the other, and tell which clauses catch each.

    The faults are in a clone of the repository, in faults/. Clauses that catch none are listed last, with reasons.
    """
    installed_torch()
    sys.path.insert(0, str(_clone()))
    from importlib import import_module

    matrix = import_module("faults.matrix")

    def rows() -> Iterator[Row]:
        caught: set[str] = set()
        for fault in watched(matrix.faults(), "kill-matrix"):
            with contextlib.redirect_stdout(sys.stderr):  # some programs print
                clauses = matrix.caught_by(fault)
            caught.update(clauses)
            yield {"fault": fault.what, "clauses": list(clauses), "reason": ""}
        for id, reason in matrix.questioned(caught).items():
            yield {"fault": "", "clauses": [id], "reason": reason}

    show(rows(), shape, lambda: table(rows(), ("fault", "clauses", "reason")))


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
