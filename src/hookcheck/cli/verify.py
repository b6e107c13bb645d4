"""The command that runs a script on several releases of torch."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import DEVIATES, FINE, WRONG_INPUT, command
from hookcheck.cli.output import echo, fields, show, table

VERDICT = fields(
    torch=("string", "the release"),
    verdict=("string", "shows, as documented, or skip"),
    why=("string", "why it says nothing of that release; empty where it does"),
    shows=("integer", "in how many runs the fault shows"),
    runs=("integer", "how many runs there were"),
    output=("string", "what the script printed"),
)

TORCH = click.option(
    "--torch", "torches", metavar="VERSIONS", shell_complete=completing.releases,
    help="Releases, separated by commas. Default: the torch that is here.",
)  # fmt: skip
RUNS = click.option("--runs", type=click.IntRange(1, 100), default=1, show_default=True, help="Runs on each release.")
LIMIT = click.option(
    "--limit", type=click.FloatRange(1), default=120, show_default=True, help="Seconds that a run may take."
)
SCRIPT = click.argument("script", type=click.Path(path_type=Path))


def present() -> str:
    """The version of the torch that is installed, without importing it; empty if there is none."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


@command("verify", [VERDICT])
@SCRIPT
@TORCH
@RUNS
@LIMIT
def verify(script: Path, torches: str | None, runs: int, limit: float, shape: str) -> int:
    """Run a script that `hookcheck repro` wrote, or any that ends as it does, on releases of torch.

    It ends with 0 where torch is as documented, 1 where the fault shows, 2 where its control fails, so that it says
    nothing, and 3 where torch or machine lack what it needs. In a script by hand an assert that fails shows the fault,
    and any other exception, one of torch's own asserts too, is a crash, which says nothing. Other releases than the one
    that is here run in environments of their own, which uv makes and which are removed. Exit code: 1 if the fault shows
    on any, 2 if it could not be told on any.
    """
    from hookcheck.errors import HookcheckError
    from hookcheck.repro import verify as scripts
    from hookcheck.repro.environments import releases_named, uv

    scripts.checked(script)
    here = present()
    names = releases_named(torches) or releases_named(here.partition("+")[0] or None)
    if not names:
        raise HookcheckError("torch is not installed here: name releases with --torch")
    if any(name != here.partition("+")[0] for name in names):
        uv()
    verdicts = []
    for name in names:
        echo(f"torch {name} …", err=True)
        verdicts.append(scripts.on(script, name, runs, limit, here))
    rows = [{**vars(verdict)} for verdict in verdicts]
    drawn = [{"torch": v.torch, "verdict": v.text()} for v in verdicts]
    show(rows, shape, lambda: table(drawn, ("torch", "verdict")))
    outcomes = {verdict.verdict for verdict in verdicts}
    return DEVIATES if scripts.SHOWS in outcomes else FINE if scripts.HOLDS in outcomes else WRONG_INPUT
