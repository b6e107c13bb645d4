"""The command that draws the report."""

from __future__ import annotations

from pathlib import Path

import click

from hookcheck.cli.frame import DEVIATES, FINE, command, installed_torch
from hookcheck.cli.output import echo, fields, saying, show

_SCHEMAS = [fields(file=("string", "a file that was written"))]


@command("report", _SCHEMAS)
@click.option("--records", type=click.Path(path_type=Path), default="reports/records", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default="reports", show_default=True)
@click.option("--scripts", is_flag=True, help="First make the reduced scripts that are missing.")
def draw_report(records: Path, output: Path, scripts: bool, shape: str) -> int:
    """Draw site/ and compatibility.md from a folder of records; exit code 1 if a file is no sound record.

    Pages show a script for each cause, which needs torch alone. Those of networks and of generated acts are kept in the
    folder scripts/ beside the records. With --scripts those that are missing are made, on the torch that is installed,
    of what shows there: each is reduced, and its script seen to fail. That takes seconds for each; when it is cut off,
    it goes on where it was the next time. What is there is shown from then on, without --scripts too, as long as its
    cause is: what needs another release is made once the command has run on one that shows it.
    """
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.collector import paused_until_exit
    from hookcheck.contract.ledger import load
    from hookcheck.report.drawing import report
    from hookcheck.run.reproduction import kept_in, reproductions

    faults: list[str] = []
    scripts_folder = kept_in(records)
    if scripts:
        _make_scripts(records, scripts_folder)
    with saying() as say, paused_until_exit():
        paths = report(
            records, output, load(), reproductions(scripts_folder), lambda f: faults.append(f"{f.file}: {f.text}"), say
        )
    rows = [{"file": str(path)} for path in paths]
    show(rows, shape, lambda: "\n".join(row["file"] for row in rows))
    for fault in faults:
        echo(f"hookcheck: left out: {fault}", err=True)
    return DEVIATES if faults else FINE


def _make_scripts(records: Path, folder: Path) -> None:
    """Makes the scripts that the installed torch can show, and tells of each."""
    torch = installed_torch()
    from hookcheck.record.model import public_version
    from hookcheck.record.reading import read_folded, record_files
    from hookcheck.report.archive import read_folder
    from hookcheck.report.causes import causes
    from hookcheck.run.reproduction import drop_others, make, missing, with_examples_of
    from hookcheck.suite import conformance_folder

    version = public_version(str(torch.__version__))
    with saying() as say:
        archive = read_folder(records, say)
    every = [cause for those in causes(archive).values() for cause in those]
    drop_others(every, folder)
    here, elsewhere = missing(archive, every, folder, version)
    folded = map(read_folded, record_files(records))
    here = with_examples_of((one for one in folded if public_version(one.header.torch.version) == version), here)
    for number, script in enumerate(make(here, folder, conformance_folder() / "corpus", version), 1):
        end = f"no script: {script.why}" if script.why else f"{script.lines} lines"
        echo(f"script {number} of {len(here)}: {script.cause.clause} {script.cause.name}: {end}", err=True)
    if elsewhere:
        echo(
            f"hookcheck: torch {version} does not show {len(elsewhere)} more; run the same on a release that does",
            err=True,
        )
