"""The commands about the list of releases: what is in it, and the suite on each, one after another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from hookcheck.cli.frame import DEVIATES, FINE, REPORTS, command
from hookcheck.cli.output import Row, show, table
from hookcheck.errors import HookcheckError


@command("releases")
@REPORTS
def list_releases(reports: Path, shape: str) -> None:
    """List the releases of torch that hookcheck runs on, each with its Python, pins and record."""
    from hookcheck.record.model import record_name
    from hookcheck.releases import releases

    def path(torch: str) -> str:
        record = reports / "records" / record_name(torch, "cpu")
        return str(record) if record.exists() else ""

    rows = [
        {"torch": each.torch, "python": each.python, "pins": list(each.pins), "record": path(each.torch)}
        for each in releases()
    ]
    shown = [{**row, "pins": ", ".join(row["pins"])} for row in rows]
    show(rows, shape, lambda: table(shown, ("torch", "python", "pins", "record")))


def _share(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, int]:
    parts = re.fullmatch(r"(\d+)/(\d+)", value)
    if not parts:
        raise click.BadParameter(f"{value!r} is no share; write it as 1/3", context, parameter)
    return int(parts[1]), int(parts[2])


@command("matrix")
@click.argument("names", metavar="[RELEASE]...", nargs=-1)
@click.option("--shard", callback=_share, default="1/1", metavar="K/N", help="Only the K-th of N shares of the list.")
@click.option("--keep", is_flag=True, help="Keep the environments, 2 to 7 GB each.")
@click.option("--again", is_flag=True, help="Run releases too whose record stands.")
@click.option("--smoke", is_flag=True, help="Take a first look at each; its record goes into reports/partial.")
@REPORTS
def matrix(
    names: tuple[str, ...], shard: tuple[int, int], keep: bool, again: bool, smoke: bool, reports: Path, shape: str
) -> int:
    """Run the suite on every release of the list (or on those named; nightly is one), one after another.

    Needs a clone, tox with tox-uv, and the interpreters on PATH. A release whose record is complete and of the present
    corpus and clauses is left as it is, so a matrix that was cut off goes on where it was. What tox printed is in
    .tox/matrix. Exit code: 0 every release conforms, 1 one does not or could not be run.
    """
    from hookcheck.run.matrix import CONFORMS, THERE, Matrix, chosen, current_corpus
    from hookcheck.suite import conformance_folder

    clone = Path.cwd()
    if not (clone / "tox.ini").exists() or not (clone / "conformance").exists():
        raise HookcheckError(f"{clone} is no clone of hookcheck: run it where tox.ini and conformance/ are")
    if find_spec("tox") is None:
        raise HookcheckError("tox is not installed here: python -m pip install tox tox-uv")
    torches = chosen(names, shard)
    run = Matrix(clone, reports, current_corpus(conformance_folder() / "corpus"), keep, again or smoke)
    sound = True

    def rows() -> Iterator[Row]:
        nonlocal sound
        for number, torch in enumerate(torches, start=1):
            click.echo(f"torch {torch}: running ({number} of {len(torches)})", err=True)
            outcome = run.run(torch, ("--hypothesis-profile", "smoke") if smoke else ())
            sound = sound and outcome.outcome in (CONFORMS, THERE)
            reason = f": {outcome.reason}" if outcome.reason else ""
            click.echo(f"torch {torch}: {outcome.outcome}{reason} ({outcome.seconds} s)", err=True)
            yield vars(outcome)

    show(rows(), shape, lambda: table([*rows()], ("torch", "outcome", "reason", "seconds", "record")))
    return FINE if sound else DEVIATES
