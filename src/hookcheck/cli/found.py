"""What was found, and why? The commands that run the suite, and check, draw, explain and reproduce what it saw."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import click

from hookcheck.cli.frame import DEVIATES, FINE, REPORTS, command, installed_torch
from hookcheck.cli.output import Row, sheet, show
from hookcheck.errors import HookcheckError


@command("report")
@click.option("--records", type=click.Path(path_type=Path), default="reports/records", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default="reports", show_default=True)
def draw_report(records: Path, output: Path, shape: str) -> int:
    """Draw index.html and compatibility.md from a folder of records; exit code 1 if a file is no sound record."""
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.contract.ledger import load
    from hookcheck.report.drawing import report

    faults: list[str] = []
    known = {e.id: (e.why, e.link) for e in load()}
    paths = report(records, output, known, lambda fault: faults.append(f"{fault.file}: {fault.text}"))
    rows = [{"file": str(path)} for path in paths]
    show(rows, shape, lambda: "\n".join(row["file"] for row in rows))
    for fault in faults:
        click.echo(f"hookcheck: left out: {fault}", err=True)
    return DEVIATES if faults else FINE


@command("explain")
@click.argument("id")
@REPORTS
def explain(id: str, reports: Path, shape: str) -> None:
    """Tell everything about a clause, an entry of the ledger, or a topology (the beginning of its id will do)."""
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.contract.clause import CLAUSES
    from hookcheck.contract.ledger import load

    entries = {entry.id: entry for entry in load()}
    rows = [_clause(id, [entry.id for entry in entries.values() if id in entry.clauses])] if id in CLAUSES else []
    rows += [_entry(entries[id])] if id in entries else []  # what an upstream issue is about may be both
    for row in rows or [_topology(id, reports)]:
        script = f"\n{row['script']}".rstrip("\n") if "script" in row and shape == "pretty" else None
        facts = {name: value for name, value in row.items() if name != "script"}
        show([row], shape, lambda facts=facts: sheet(facts))  # type: ignore[misc]
        show((), shape, lambda script=script: script)  # type: ignore[misc]


def _clause(id: str, ledger: list[str]) -> Row:
    from hookcheck.contract.clause import CLAUSES, described

    return {"what": "clause", **described(CLAUSES[id]), "ledger": ledger}


def _entry(entry: Any) -> Row:
    lists = ("clauses", "kinds", "devices", "instead")
    return {
        "what": "ledger entry",
        "id": entry.id,
        "why": " ".join(entry.why.split()),
        "link": entry.link,
        **{name: list(getattr(entry, name)) for name in lists},
        "says": entry.says,
        "families": list(entry.families) or ["all"],
        "torch": str(entry.torch),
        "when": {key: list(words) for key, words in entry.when},
        "reviewed": entry.reviewed.isoformat(),
    }


def _topology(id: str, reports: Path) -> Row:
    from hookcheck.repro.lookup import find
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.codec import identify
    from hookcheck.topology.model import needs
    from hookcheck.topology.source import source

    try:
        found = find(id, conformance_folder() / "corpus", reports)
    except HookcheckError as error:
        raise HookcheckError(f"{id!r} is no clause and no entry of the ledger; as a topology: {error}") from None
    since, thing = needs(found.topology)
    return {
        "what": "topology",
        "id": identify(found.topology),
        "where": found.where,
        "device": found.topology.device,
        "since": since,
        "needs": thing,
        "script": source(found.topology).script(),
    }


@command("validate")
@click.argument("record", type=click.Path(path_type=Path), nargs=-1, required=True)
def validate(record: tuple[Path, ...], shape: str) -> int:
    """Check that files are sound records; exit code 1 if any is not."""
    rows = [_validated(path) for path in record]
    show(rows, shape, lambda: "\n".join(f"{r['file']}: valid" if r["valid"] else r["message"] for r in rows))
    return FINE if all(row["valid"] for row in rows) else DEVIATES


def _validated(path: Path) -> Row:
    from hookcheck.record.errors import RecordError
    from hookcheck.record.reading import read

    try:
        read(path)
    except RecordError as error:
        name = type(error).__name__
        return {"file": str(path), "valid": False, "error": name, "message": f"{name}: {' '.join(str(error).split())}"}
    return {"file": str(path), "valid": True, "error": None, "message": None}


@command("repro")
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


@command("run", context_settings={"ignore_unknown_options": True})
@click.option("--device", type=click.Choice(["cpu", "cuda", "all"]), default="cpu", show_default=True)
@REPORTS
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def run(device: str, reports: Path, pytest_args: tuple[str, ...], shape: str) -> int:
    """Run the suite on the torch that is installed, as `pytest conformance/` does in a clone.

    PYTEST_ARGS go to pytest: --family, --kind and --clause select (each may be given several times),
    --hypothesis-profile is smoke (a first look), default or thorough. The exit code is pytest's: 0 all is as the ledger
    says, 1 it is not, 2 interrupted, 3 a fault in pytest, 4 wrong usage of pytest, 5 nothing was selected.
    """
    from hookcheck.suite import conformance_folder

    installed_torch()
    import pytest

    folder, before = conformance_folder(), _written(reports)
    # In parallel, as in a clone; and no cache, which would go into the installed package. The user's own wins.
    left_out = ("cacheprovider", "logging", "threadexception", "unraisableexception")
    plugins = [option for name in left_out for option in ("-p", f"no:{name}")]
    arguments = [str(folder), "-n", "auto", *plugins, f"--device={device}", f"--reports={reports}", *pytest_args]
    # With JSON on standard output, what pytest tells people goes to standard error.
    with contextlib.redirect_stdout(sys.stderr) if shape == "json" else contextlib.nullcontext():
        status = int(pytest.main(arguments))
    new = [path for path, changed in _written(reports).items() if before.get(path) != changed]
    show(map(_recorded, new), shape, lambda: None)
    return status


def _written(reports: Path) -> dict[Path, int]:
    """The records below a folder, each with the time of its last change."""
    from hookcheck.record.reading import record_files

    paths = (path for folder in sorted(reports.glob("*")) for path in record_files(folder))
    return {path: path.stat().st_mtime_ns for path in paths}


def _recorded(path: Path) -> Row:
    from hookcheck.record.reading import read

    record = read(path)
    verdicts = [cell.verdict for cell in record.cells()]
    return {
        "record": str(path),
        "torch": record.header.torch.version,
        "device": record.header.device,
        "complete": record.footer.complete,
        "verdicts": {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
    }
