"""The command that prints a stand-alone script for one deviation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hookcheck.cli.frame import REPORTS, command
from hookcheck.cli.output import Row, fields, show
from hookcheck.errors import HookcheckError

_SCHEMAS = [
    fields(
        topology=("string", "the topology's id"),
        where=("string", "the family, record or file that it is from"),
        clause=("string", "the clause's id"),
        kind=("string", "the hook kind"),
        device=("string", "the device that the script runs on"),
        script=("string", "the script"),
    ),
    fields(
        clause=("string", "the id of the clause, which is a program"),
        chapter=("string", "the chapter that it belongs to"),
        device=("string", "the device that the script runs on"),
        script=("string", "the script"),
    ),
]


@command("repro", _SCHEMAS, piped="pretty")
@click.argument("case")
@click.option("--clause", "clause_id", metavar="ID", help="The clause on networks that the script checks.")
@click.option("--kind", metavar="KIND", help="The hook kind.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Default: the case's own, or cpu.")
@REPORTS
def repro(case: str, clause_id: str | None, kind: str | None, device: str | None, reports: Path, shape: str) -> None:
    """Print one script that needs torch alone and shows whether it deviates from a clause.

    CASE is the id of a clause that is a program, which needs nothing more. Or, with --clause and --kind, the id of a
    topology in the corpus or in a record, or the beginning of one; or a file that holds a topology as JSON; or - for
    standard input. The script ends with exit code 1 where the fault shows and with 0 where not.
    """
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.contract.clause import CLAUSES
    from hookcheck.programs.program import Program

    clause = CLAUSES.get(case)
    if isinstance(clause, Program):
        row = _program_repro(clause, clause_id, kind, device)
    else:
        row = _topology_repro(case, clause_id, kind, device, reports)
    show([row], shape, lambda: row["script"].rstrip("\n"))


def _program_repro(program: Any, clause_id: str | None, kind: str | None, device: str | None) -> Row:
    from hookcheck.repro.program import program_script

    if clause_id not in (None, program.id) or kind not in (None, program.chapter):
        raise HookcheckError(f"{program.id} is itself the clause, a program: leave --clause and --kind out")
    device = device or (program.device if program.device != "any" else "cpu")
    text = program_script(program, device)
    return {"clause": program.id, "chapter": program.chapter, "device": device, "script": text}


def _topology_repro(case: str, clause_id: str | None, kind: str | None, device: str | None, reports: Path) -> Row:
    from hookcheck.contract.clause import CLAUSES, clause_named
    from hookcheck.hooks.kinds import kind_named
    from hookcheck.programs.program import Program
    from hookcheck.repro.lookup import find
    from hookcheck.repro.script import script
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.codec import identify

    if case in CLAUSES:
        raise HookcheckError(f"{case} is a clause on networks: give a topology, with --clause {case} and --kind")
    if clause_id is None or kind is None:
        raise HookcheckError(f"{case!r} is no program; for a topology give --clause and --kind")
    clause = clause_named(clause_id)
    if isinstance(clause, Program):
        raise HookcheckError(f"{clause_id} is a program, which runs on no topology: hookcheck repro {clause_id}")
    hook = kind_named(kind)
    found = find(case, conformance_folder() / "corpus", reports)
    device = device or (found.topology.device if found.topology.device != "any" else "cpu")
    return {
        "topology": identify(found.topology),
        "where": found.where,
        "clause": clause.id,
        "kind": kind,
        "device": device,
        "script": script(found.topology, clause, hook, device),
    }
