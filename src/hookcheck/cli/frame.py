"""What have all commands of hookcheck in common? Exit codes, one line for a fault, ``--format``, the check of torch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from hookcheck import __version__
from hookcheck.cli.output import SCHEMAS, documented
from hookcheck.distribution import check_distribution
from hookcheck.errors import HookcheckError

FINE, DEVIATES, WRONG_INPUT, NO_TORCH, INTERRUPTED = 0, 1, 2, 3, 130

EXIT_CODES = """\b
Exit codes:
    0  fine
    1  deviations, findings of scan, or an invalid record
    2  wrong usage or input; one line on standard error says what to do
    3  torch is missing or unusable
  130  interrupted
`hookcheck run` ends with the exit code of pytest, unless it could not start it."""


class TorchUnusable(HookcheckError):
    """There is no torch, or none that hooks can be probed on."""


class _Cli(click.Group):
    """The group of commands; every fault of the input is one line on standard error."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Runs a command and ends the process with its exit code."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError):  # a stream that is no text file has none
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            check_distribution()
            status = super().main(*args, **{**extra, "standalone_mode": False}) or FINE
        except click.ClickException as error:
            status = _failed(error.format_message(), WRONG_INPUT)
        except TorchUnusable as error:
            status = _failed(str(error), NO_TORCH)
        except HookcheckError as error:
            status = _failed(str(error), WRONG_INPUT)
        except click.Abort:
            click.echo("hookcheck: interrupted", err=True)
            status = INTERRUPTED
        sys.exit(status)


def _failed(message: str, status: int) -> int:
    click.echo(f"hookcheck: error: {' '.join(message.split())}", err=True)
    return status


_HELP = {"help_option_names": ["-h", "--help"]}


@click.group(cls=_Cli, epilog=EXIT_CODES, context_settings=_HELP, no_args_is_help=False)
@click.version_option(__version__, message="hookcheck %(version)s")
def main() -> None:
    """A conformance and regression suite for PyTorch's hooks."""


def command(
    name: str, schemas: list[dict[str, Any]], shapes: Sequence[str] = ("pretty", "json"), **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with ``--format``, one of ``shapes``, whose help lists the fields of its JSON lines (``schemas``)."""
    SCHEMAS[name] = schemas
    others = "".join(f" Or {shape}." for shape in shapes[2:])
    fields = "\n\n".join(map(documented, schemas))
    shape = click.option(
        "--format", "shape", type=click.Choice(shapes), default="pretty", show_default=True,
        help=f"For people, or one JSON object a line.{others}",
    )  # fmt: skip
    return lambda function: main.command(name, epilog=fields, **settings)(shape(function))


REPORTS = click.option(
    "--reports", type=click.Path(path_type=Path), default="reports", show_default=True,
    help="Folder with the records and the report.",
)  # fmt: skip


def installed_torch() -> Any:
    """The torch that is installed, one that hooks can be probed on.

    Raises:
        TorchUnusable: there is none.
    """
    try:
        from hookcheck.probe.run import check_torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise TorchUnusable(f"torch cannot be imported: {error}") from None
        raise TorchUnusable("torch is not installed: pip install torch (any release from 1.7)") from None
    except (ImportError, OSError) as error:  # OSError: one of its libraries is missing
        raise TorchUnusable(f"torch cannot be imported: {error}") from None
    try:
        check_torch()
    except HookcheckError as error:
        raise TorchUnusable(str(error)) from None
    import torch

    return torch
