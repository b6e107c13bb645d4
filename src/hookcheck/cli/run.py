"""The command that runs the suite on the torch that is installed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import REPORTS, command, installed_torch
from hookcheck.cli.output import Row, fields, show

_SCHEMAS = [
    fields(
        record=("string", "a record that the run has written"),
        torch=("string", "the version of torch"),
        device=("string", "the device"),
        complete=("boolean", "whether the run went to its end"),
        verdicts=("object", "how many cells have each verdict"),
    )
]


def _selecting(what: str, completer: completing.Completer) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option(
        f"--{what}", multiple=True, metavar=what.upper(), shell_complete=completer,
        help=f"Only this {what}; may be given several times.",
    )  # fmt: skip


@command("run", _SCHEMAS, piped="pretty", context_settings={"ignore_unknown_options": True})
@click.option("--device", type=click.Choice(["cpu", "cuda", "all"]), default="cpu", show_default=True)
@_selecting("family", completing.from_index("families"))
@_selecting("kind", completing.from_index("kinds", "chapters"))
@_selecting("clause", completing.from_index("clauses"))
@_selecting("chapter", completing.from_index("chapters"))
@click.option(
    "--hypothesis-profile", metavar="PROFILE",
    shell_complete=completing.one_of("smoke", "default", "thorough", "soak"),
    help="How much is explored: smoke (a first look), default, thorough (and every network of the corpus runs with "
    "every hook kind), or soak (without an end).",
)  # fmt: skip
@click.option(
    "--baseline", multiple=True, metavar="RECORD", shell_complete=completing.records,
    help="Compare with this record, or that of this version of torch, at the end; may be given several times.",
)  # fmt: skip
@REPORTS
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def run(reports: Path, pytest_args: tuple[str, ...], shape: str, **options: Any) -> int:
    """Run the suite on the torch that is installed, as `pytest conformance/` does in a clone.

    PYTEST_ARGS go to pytest, such as -v, or --resume, --label and --topologies of the suite. The exit code is pytest's:
    0 all is as the ledger says, 1 it is not, 2 interrupted, 3 a fault in pytest, 4 wrong usage of pytest, 5 nothing was
    selected.
    """
    from hookcheck.suite import conformance_folder

    installed_torch()
    import pytest

    folder, before = conformance_folder(), _written(reports)
    # In parallel, as in a clone; and no cache, which would go into the installed package. The user's own wins.
    left_out = ("cacheprovider", "logging", "threadexception", "unraisableexception")
    plugins = [option for name in left_out for option in ("-p", f"no:{name}")]
    given = [
        f"--{name.replace('_', '-')}={value}"
        for name, values in {**options, "reports": reports}.items()
        for value in (values if isinstance(values, tuple) else (values,))
        if value is not None
    ]
    arguments = [str(folder), "-n", "auto", *plugins, *given, *pytest_args]
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
