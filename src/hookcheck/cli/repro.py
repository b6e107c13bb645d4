"""The command that writes a folder for an upstream report: a stand-alone script and the text of the issue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import REPORTS, command, installed_torch
from hookcheck.cli.output import echo, fields, saying, show
from hookcheck.cli.records import records_by_version
from hookcheck.errors import HookcheckError
from hookcheck.repro.writers import SECONDS

if TYPE_CHECKING:
    from hookcheck.repro.cells import Wanted
    from hookcheck.repro.report import Report

_SCHEMAS = [
    fields(
        folder=("string", "the folder"),
        title=("string", "the issue's title"),
        clause=("string", "the clause's id"),
        kind=("string", "the hook kind; of a program its chapter"),
        case=("string", "the topology's id, before it was reduced; of a program its own"),
        lines=("integer", "how many lines the script has"),
        verdicts=("array", "what the script says of each release that it was run on"),
    )
]


@command("repro", _SCHEMAS, piped="pretty")
@click.argument("case", shell_complete=completing.cells)
@click.option("--record", type=click.Path(path_type=Path), help="The record. Default: that of the torch that is here.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The folder. Default: named after clause and case."
)
@click.option(
    "--clause", "clause_id", metavar="ID", shell_complete=completing.from_index("clauses"),
    help="The clause on networks, where CASE is a topology.",
)  # fmt: skip
@click.option(
    "--kind", metavar="KIND", shell_complete=completing.from_index("kinds"),
    help="The hook kind, where CASE is a topology.",
)  # fmt: skip
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Default: the case's own, or cpu.")
@click.option(
    "--torch", "torches", metavar="VERSIONS", shell_complete=completing.releases,
    help="Run the script on these releases as well, with uv.",
)  # fmt: skip
@click.option("--runs", type=click.IntRange(1, 100), default=3, show_default=True, help="Runs on each release.")
@click.option("--limit", type=click.FloatRange(1), default=120, show_default=True, help="Seconds that a run may take.")
@click.option(
    "--within", type=click.FloatRange(0), default=SECONDS, show_default=True,
    help="Seconds for which the script of a program is made shorter; then the shortest so far is taken.",
)  # fmt: skip
@REPORTS
def repro(
    case: str, record: Path | None, output: Path | None, clause_id: str | None, kind: str | None, device: str | None,
    torches: str | None, runs: int, limit: float, within: float, reports: Path, shape: str,
) -> None:  # fmt: skip
    """Write a folder with repro.py, which needs torch alone and shows a fault, and issue.md, the text of a report.

    CASE is a cell of a record (OB-08/nested/full_backward; OB-08 alone takes the smallest network on which the clause
    deviates), the id of a clause that is a program, or, with --clause and --kind, a topology: the beginning of its id,
    a file that holds it as JSON, or - for standard input.

    The network is reduced to what shows the fault, and the script is run in a process of its own before it is shown. It
    ends with 1 where the fault shows, 0 where torch is as documented, 2 where its control fails, 3 where torch or
    machine lack what it needs.
    """
    installed_torch()
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.repro import report as reporting
    from hookcheck.repro.environments import releases_named, uv

    others = releases_named(torches)
    if others:
        uv()
    reporting.check_writable(output or Path())  # before minutes go into reducing
    report = _report(case, record, clause_id, kind, device, within, reports)
    folder = output or Path(f"{report.clause.id}-{report.case[:8]}" if report.case != report.clause.id else report.case)
    report = reporting.verified(report, folder, others, runs, limit, _said)
    reporting.write(report, folder, reports / "records")
    row = {
        "folder": str(folder),
        "title": report.title,
        "clause": report.clause.id,
        "kind": report.kind,
        "case": report.case,
        "lines": report.script.count("\n"),
        "verdicts": [{"torch": verdict.torch, "verdict": verdict.text()} for verdict in report.verdicts],
    }
    ran = "\n".join(f"torch {verdict.torch}: {verdict.text()}" for verdict in report.verdicts)
    show(
        [row],
        shape,
        lambda: f"{report.title}\n{ran}\n{folder / 'repro.py'} ({row['lines']} lines)\n{folder / 'issue.md'}",
    )


def _report(
    case: str,
    record: Path | None,
    clause_id: str | None,
    kind: str | None,
    device: str | None,
    seconds: float,
    reports: Path,
) -> Report:
    """The report that is meant, its script not run yet."""
    from hookcheck.contract.clause import CLAUSES
    from hookcheck.programs.program import Program
    from hookcheck.repro.report import of_a_network, of_a_program

    name = case.partition("/")[0]
    clause = CLAUSES.get(name)
    if isinstance(clause, Program):
        if clause_id not in (None, clause.id) or kind not in (None, clause.chapter):
            raise HookcheckError(f"{clause.id} is itself the clause, a program: leave --clause and --kind out")
        with saying() as say:
            tried = lambda scripts: say(f"reducing: {scripts} scripts run")  # noqa: E731
            return of_a_program(clause, device or _device_of(record), tried=tried, seconds=seconds)
    if clause is not None or ("/" in case and not Path(case).exists()):
        wanted = _in_record(f"{case}//{kind}" if kind and "/" not in case else case, record, reports)
    else:
        wanted = _by_topology(case, clause_id, kind, reports)
    device = device or (wanted.topology.device if wanted.topology.device != "any" else "cpu")
    with saying() as say:
        return of_a_network(wanted, device, lambda tried: say(f"reducing: {tried} networks tried"))


def _device_of(record: Path | None) -> str | None:
    """The device that a record is of, if one is named: what deviates there need not deviate on another."""
    if record is None:
        return None
    from hookcheck.record.reading import read_folded

    device = read_folded(record).header.device
    return None if device == "cpu" else device


def _in_record(name: str, path: Path | None, reports: Path) -> Wanted:
    import torch

    from hookcheck.record.model import public_version, record_name
    from hookcheck.record.reading import read_folded
    from hookcheck.repro.cells import cell, in_record
    from hookcheck.suite import conformance_folder

    cell(name)
    version = str(torch.__version__)
    default = reports / "records" / record_name(version, "cpu")
    if path is None and not default.exists():
        of_version = records_by_version(reports).get(public_version(version), [])
        if len(of_version) != 1:
            raise HookcheckError(
                f"there is no record of torch {version} ({default}): name one with --record, or run the suite"
            )
        (default,) = of_version
    record = read_folded(path or default)
    of = record.header.torch.version
    if public_version(of) != public_version(version):
        raise HookcheckError(
            f"the record is of torch {of}, and this is torch {version}: a case is reduced on the torch of its record: "
            f"install torch {public_version(of)} beside hookcheck, or take a record of {public_version(version)}"
        )
    return in_record(name, record, conformance_folder() / "corpus", reports)


def _by_topology(case: str, clause_id: str | None, kind: str | None, reports: Path) -> Wanted:
    from hookcheck.contract.clause import clause_named
    from hookcheck.hooks.kinds import kind_named
    from hookcheck.programs.program import Program
    from hookcheck.repro.cells import Wanted
    from hookcheck.repro.lookup import find
    from hookcheck.suite import conformance_folder

    if clause_id is None or kind is None:
        raise HookcheckError(
            f"{case!r} is no cell and no clause; `hookcheck list` shows the clauses; "
            "for a topology give --clause and --kind"
        )
    clause = clause_named(clause_id)
    if isinstance(clause, Program):
        raise HookcheckError(f"{clause_id} is a program, which runs on no topology: hookcheck repro {clause_id}")
    kind_named(kind)
    match = find(case, conformance_folder() / "corpus", reports)
    return Wanted(match.topology, match.where, match.where, clause.id, kind)


def _said(text: str) -> None:
    echo(f"{text} …", err=True)
