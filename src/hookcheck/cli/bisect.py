"""The command that finds the release in which a fault came, or went."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import command
from hookcheck.cli.output import echo, fields, show
from hookcheck.cli.verify import LIMIT, RUNS, SCRIPT, present
from hookcheck.errors import HookcheckError

if TYPE_CHECKING:
    from hookcheck.repro.verify import Verdict

_SCHEMAS = [
    fields(
        before=("string", "the last release before the change"),
        after=("string", "the first release after it"),
        skipped=("array", "the releases between them of which nothing can be said"),
        specifier=("string", "the releases on which the fault shows, of those searched"),
        text=("string", "the answer, to be pasted into an issue"),
    )
]


@command("bisect", _SCHEMAS)
@SCRIPT
@click.option(
    "--good", metavar="VERSION", shell_complete=completing.releases,
    help="A release that is as documented. Default: the oldest of the list.",
)  # fmt: skip
@click.option(
    "--bad", metavar="VERSION", shell_complete=completing.releases,
    help="A release on which the fault shows. Default: the newest of the list.",
)  # fmt: skip
@click.option("--find-fix", is_flag=True, help="Search for the release that mended it: --bad is the older end then.")
@click.option("--again", is_flag=True, help="Forget the verdicts of a search before.")
@RUNS
@LIMIT
def bisect(
    script: Path, good: str | None, bad: str | None, find_fix: bool, again: bool, runs: int, limit: float, shape: str
) -> None:
    """Find the release of torch in which the fault that a script shows came; with --find-fix, in which it went.

    Both ends are tried first, then the middle of what is left; before them, unless both are named, the torch that is
    here: where the script crashes there and at an end in the same way, the search ends. What cannot be installed or
    imported, crashes, takes too long, or lacks the API is skipped. Each verdict is written to SCRIPT's name with
    .bisect.json, so that a search that was cut off goes on. Environments are made by uv, one after another, and
    removed.
    """
    from hookcheck.releases import releases
    from hookcheck.repro import verify as scripts
    from hookcheck.repro.bisect import Memory
    from hookcheck.repro.bisect import bisect as searched
    from hookcheck.repro.environments import uv

    scripts.checked(script)
    known = [release.torch for release in releases()]
    for name in filter(None, (good, bad)):
        if name not in known:
            raise HookcheckError(f"there is no torch {name!r} in the list of releases; choose from {', '.join(known)}")
    uv()
    older, newer = (bad, good) if find_fix else (good, bad)
    low, high = (known.index(name) if name else end for name, end in ((older, 0), (newer, len(known) - 1)))
    if low >= high:
        other = "leave out --find-fix" if find_fix else "search with --find-fix for the release that mended it"
        raise HookcheckError(
            f"torch {known[low]} is not older than {known[high]}: exchange --good and --bad, or {other}"
        )
    memory = Memory.of(script)
    if again:
        memory.verdicts.clear()
    here = present()
    attempt = partial(scripts.on, script, runs=runs, limit=limit, present=here)
    ends = {"named": bool(good and bad), "find_fix": find_fix}
    try:
        answer = searched(known[low : high + 1], attempt, memory, _said, **ends, present=here.partition("+")[0])
    except KeyboardInterrupt:
        if memory.path.is_file():
            click.echo(f"\nthe verdicts so far are in {memory.path}: the same command goes on with them", err=True)
        raise
    row = {
        "before": answer.before.torch,
        "after": answer.after.torch,
        "skipped": [verdict.torch for verdict in answer.skipped],
        "specifier": answer.specifier,
        "text": answer.text(),
    }
    show([row], shape, lambda: f"{answer.specifier}\n\n{answer.text()}")


def _said(verdict: Verdict, left: int) -> None:
    steps = "the last step" if left < 1 else f"at most {left} more step{'s' if left > 1 else ''}"
    echo(f"torch {verdict.torch}: {verdict.text()} ({steps})", err=True)
