"""The command that runs the suite on each release of the list, one after another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import DEVIATES, FINE, REPORTS, command
from hookcheck.cli.output import Row, echo, fields, show, table
from hookcheck.errors import HookcheckError

_SCHEMAS = [
    fields(
        torch=("string", "the release"),
        outcome=("string", "conforms, deviates, there already, or not run"),
        reason=("string", "why it was not run, or how pytest sums up what fails; empty where all is well"),
        seconds=("integer", "how long it took"),
        record=("string", "the record; empty where there is none"),
    )
]


def _share(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, int]:
    parts = re.fullmatch(r"(\d+)/(\d+)", value)
    if not parts:
        raise click.BadParameter(f"{value!r} is no share; write it as 1/3", context, parameter)
    return int(parts[1]), int(parts[2])


@command("matrix", _SCHEMAS)
@click.argument("names", metavar="[RELEASE]...", nargs=-1, shell_complete=completing.releases)
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
            echo(f"torch {torch}: running ({number} of {len(torches)})", err=True)
            outcome = run.run(torch, ("--hypothesis-profile", "smoke") if smoke else ())
            sound = sound and outcome.outcome in (CONFORMS, THERE)
            reason = f": {outcome.reason}" if outcome.reason else ""
            echo(f"torch {torch}: {outcome.outcome}{reason} ({outcome.seconds} s)", err=True)
            yield vars(outcome)

    show(rows(), shape, lambda: table([*rows()], ("torch", "outcome", "reason", "seconds", "record")))
    return FINE if sound else DEVIATES
