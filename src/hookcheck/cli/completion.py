"""The command that prints what a shell needs to complete hookcheck's commands, options and names."""

from __future__ import annotations

import click

from hookcheck.cli.frame import command, main
from hookcheck.cli.output import fields, show
from hookcheck.cli.shells import SHELLS

_SCHEMAS = [fields(shell=("string", "the shell"), script=("string", "what its start-up file is to run"))]


@command("completion", _SCHEMAS, piped="pretty")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str, shape: str) -> None:
    """Print the completion script of a shell.

    For bash, put `eval "$(hookcheck completion bash)"` into ~/.bashrc; for zsh the same into ~/.zshrc; for fish,
    `hookcheck completion fish > ~/.config/fish/completions/hookcheck.fish`.
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None  # there is one for each of them
    text = script(main, {}, "hookcheck", "_HOOKCHECK_COMPLETE").source()
    show([{"shell": shell, "script": text}], shape, lambda: text)
