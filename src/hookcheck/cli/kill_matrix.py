"""The command that says which clauses catch which faults, and what the ledger excuses."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookcheck.cli.frame import DEVIATES, FINE, command, installed_torch
from hookcheck.cli.output import Row, fields, show, table, watched
from hookcheck.errors import HookcheckError

if TYPE_CHECKING:
    from rich.console import RenderableType

OLDEST = (2, 0)
"""The release of torch that has all of what the faults patch."""

_SCHEMAS = [
    fields(
        fault=("string", "how the hook engine is wrong; empty for a clause that catches no fault, and an entry"),
        clauses=("array", "the clauses that catch it, by what the ledger does not explain; or the one clause"),
        reason=("string", "why a clause catches none; empty for a fault or an entry"),
        entry=("string", "an entry of the ledger that applies to this torch; empty for a fault or a clause"),
        excused=("array", "the faults that the entry excuses"),
    ),
    fields(
        branch=("string", "a branch of torch's own hook code, and how it is forced"),
        seen=("string", "the clause that sees that, `a crash`, `no end`, or nothing"),
        reason=("string", "why nothing sees it; empty where something does, or where that is not known"),
    ),
]


@command("kill-matrix", _SCHEMAS)
@click.option("--branches", is_flag=True, help="Force each branch of torch's own hook code instead.")
@click.option(
    "--keep", type=click.Path(dir_okay=False, path_type=Path),
    help="A file that keeps what is known of branches, function by function: what it has is not looked at again.",
)  # fmt: skip
def kill_matrix(branches: bool, keep: Path | None, shape: str) -> int:
    """Put faults into torch's hook code, one after the other, and tell which clauses catch each, and what the ledger
    excuses.

    The faults are in a clone of the repository, in faults/. A fault is caught by what the ledger does not explain; an
    entry of the ledger excuses it where it explains all that the fault changes on some network or in some program.
    Clauses that catch none, and entries that excuse some, are listed last.

    With --branches each branch of that code is taken always, or never, by a rewrite in memory, and what reaches it is
    run again. On a terminal those are listed that no clause sees, each with a reason. The clause that saw a branch last
    time, by faults/branches.jsonl, is asked first; that takes some twenty minutes on one core.
    """
    torch = installed_torch()
    from hookcheck.releases.numbers import release

    if release(torch.__version__) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise HookcheckError(f"the faults are those of torch {oldest} and later; here is torch {torch.__version__}")
    if branches:
        return _branches(shape, keep)
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

        listed = list(rows())
        entries = [row for row in listed if row["entry"]]
        excusing = [row for row in entries if row["excused"]]
        others = [row for row in listed if not row["entry"]]
        total = f"{len(entries)} entries of the ledger, of which {len(excusing)} excuse a fault"
        return Group(
            table(others, ("fault", "clauses", "reason")),
            *([table(excusing, ("entry", "excused"))] if excusing else []),
            total,
        )

    show(rows(), shape, pretty)
    return FINE


def _branches(shape: str, keep: Path | None) -> int:
    """Forces branches; ends with `DEVIATES` where nothing sees one, and no reason is known."""
    sys.path.insert(0, str(_clone()))
    from importlib import import_module

    on_branches, unseen = import_module("faults.on_branches"), import_module("faults.unseen_branches")
    results = on_branches.BranchLog(keep)
    total, missed = 0, list[Row]()

    def rows() -> Iterator[Row]:
        nonlocal total
        for function in watched(list(on_branches.functions()), "branches"):
            with contextlib.redirect_stdout(sys.stderr):
                judged = results.of(function)
            for branch, seen in judged:
                row = {"branch": branch, "seen": seen, "reason": "" if seen else unseen.reason(branch)}
                total += 1
                if not seen:
                    missed.append(row)
                yield row

    def pretty() -> RenderableType:
        from rich.console import Group

        for _ in rows():
            pass
        return Group(table(missed, ("branch", "reason")), f"{total} branches, of which nothing sees {len(missed)}")

    show(rows(), shape, pretty)
    return DEVIATES if any(not row["reason"] for row in missed) else FINE


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
