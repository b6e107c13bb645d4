"""What all commands of hookcheck have in common: exit codes, one line for a fault, ``--format``, the check of torch."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from hookcheck import __version__
from hookcheck.cli.output import READABLE, SCHEMAS, documented, echo, is_dumb, width
from hookcheck.distribution import check_distribution
from hookcheck.errors import HookcheckError

FINE, DEVIATES, WRONG_INPUT, NO_TORCH, INTERRUPTED = 0, 1, 2, 3, 130

EXIT_CODES = (
    (FINE, "fine"),
    (DEVIATES, "deviations, findings of scan, something worse, or an invalid record"),
    (WRONG_INPUT, "wrong usage or input, or it cannot be told; one line on standard error says what to do"),
    (NO_TORCH, "torch is missing or unusable"),
    (INTERRUPTED, "interrupted, by Ctrl-C or by SIGTERM"),
)
OF_RUN = "`hookcheck run` ends with the exit code of pytest, unless it could not start it."
OF_PIPES = "A reader that stops reading, such as `head`, changes none of these: a command goes on to its end."

FIRST = (
    ("hookcheck upgrade --from 2.6.0 --to 2.13.0", "may I upgrade, and what is there to do?"),
    ("hookcheck check package.module:make", "do hooks on my own model tell the truth?"),
    ("hookcheck scan src/", "which hooks do my files register, and what is known of them?"),
    ("hookcheck support full_backward", "what holds for a hook kind, since and until when?"),
    ("hookcheck run --hypothesis-profile smoke", "a first look at the torch that is installed"),
    ("hookcheck doctor", "is all here that a run needs?"),
    ("hookcheck --help", "all commands"),
)
"""What to type first, and the question that it answers."""


class TorchUnusable(HookcheckError):
    """There is no torch, or none that hooks can be probed on."""


class _Cli(click.Group):
    """The group of commands; every fault of the input is one line on standard error."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Runs a command and ends the process with its exit code."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError):  # a stream that is no text file has none
                stream.reconfigure(errors=READABLE)  # type: ignore[union-attr]
        if os.environ.get("NO_COLOR") or is_dumb():
            extra.setdefault("color", False)
        try:
            check_distribution()
            status = super().main(*args, **{**extra, "standalone_mode": False}) or FINE
            sys.stdout.flush()
        except click.UsageError as error:
            more = f"; `{error.ctx.command_path} --help` says more" if error.ctx else ""
            status = _failed(f"{error.format_message().rstrip('.')}{more}", WRONG_INPUT)
        except click.ClickException as error:
            status = _failed(error.format_message(), WRONG_INPUT)
        except TorchUnusable as error:
            status = _failed(str(error), NO_TORCH)
        except HookcheckError as error:
            status = _failed(str(error), WRONG_INPUT)
        except click.Abort:
            echo("hookcheck: interrupted", err=True)
            status = INTERRUPTED
        sys.exit(status)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the exit codes below the commands."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES])
        formatter.write_paragraph()
        formatter.write_text(OF_RUN)
        formatter.write_paragraph()
        formatter.write_text(OF_PIPES)


def _failed(message: str, status: int) -> int:
    echo(f"hookcheck: error: {' '.join(message.split())}", err=True)
    return status


_HELP = {"help_option_names": ["-h", "--help"]}


@click.group(cls=_Cli, context_settings=_HELP, invoke_without_command=True)
@click.version_option(__version__, message="hookcheck %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """A conformance and regression suite for PyTorch's hooks."""
    if context.invoked_subcommand is None:
        formatter = click.HelpFormatter(width=width())
        formatter.write_text("hookcheck says what PyTorch's hooks do, on the torch that you have and on others.")
        with formatter.section("To begin with"):
            formatter.write_dl(FIRST, col_max=max(width() - 34, 4))
        echo(formatter.getvalue(), nl=False)


def command(
    name: str,
    schemas: list[dict[str, Any]],
    shapes: Sequence[str] = ("pretty", "json"),
    piped: str = "json",
    **settings: Any,
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with ``--format``, one of ``shapes``, whose help lists the fields of its JSON lines (``schemas``).

    The first of the shapes is the terminal's; ``piped`` is that of an output which is none.
    """
    SCHEMAS[name] = schemas
    fields = "\n\n".join(map(documented, schemas))
    default = shapes[0] if piped == shapes[0] else f"{shapes[0]} on a terminal, {piped} elsewhere"

    def chosen(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
        return value or (shapes[0] if sys.stdout.isatty() else piped)

    def print_schema(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            echo(json.dumps({"$schema": _DRAFT, "title": f"a line of hookcheck {name}", "oneOf": schemas}))
            context.exit()

    shape = click.option(
        "--format", "shape", type=click.Choice(shapes), callback=chosen,
        help=f"json is one object a line. [default: {default}]",
    )  # fmt: skip
    schema = click.option(
        "--schema", is_flag=True, is_eager=True, expose_value=False, callback=print_schema,
        help="Print the JSON Schema of a line of --format json, and end.",
    )  # fmt: skip
    return lambda function: main.command(name, epilog=fields, **settings)(shape(schema(function)))


_DRAFT = "https://json-schema.org/draft/2020-12/schema"

REPORTS = click.option(
    "--reports", type=click.Path(path_type=Path), default="reports", show_default=True,
    help="Folder with the records and the report.",
)  # fmt: skip


def words(known: tuple[str, ...] = ()) -> Callable[[click.Context, click.Parameter, str], tuple[str, ...]]:
    """Splits a value at its commas; a word that is not in ``known`` is refused, where that names any."""

    def split(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
        given = tuple(word.strip() for word in value.split(",") if word.strip())
        for word in given:
            if known and word not in known:
                raise click.BadParameter(f"{word!r} is none of {', '.join(known)}", context, parameter)
        return given

    return split


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
