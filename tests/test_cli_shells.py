"""Do bash, zsh and fish complete what is typed? Each runs in a terminal, and what it then calls is looked at."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
PATIENCE = 60
"""Seconds until a shell has called its command, on a machine that is busy."""
STARTED = {
    "bash": ("--noprofile", "--rcfile", "start", "-i"),
    "zsh": ("-d", "-i"),
    "fish": ("--no-config", "-i", "-C", "source start"),
}
START = {
    "bash": 'eval "$(hookcheck completion bash)"\n',
    "zsh": 'autoload -Uz compinit; compinit -D -u; eval "$(hookcheck completion zsh)"\n',
    "fish": "hookcheck completion fish | source\n",
}
COMMAND = f"""#!/bin/sh
if [ "$1" = completion ] || [ -n "$_HOOKCHECK_COMPLETE" ]; then exec {sys.executable} -m hookcheck "$@"; fi
printf '%s\\n' "$@" > called.new && mv called.new called
"""


def called(shell: str, typed: str, folder: Path) -> list[str]:
    """The words that ``shell`` hands to hookcheck where somebody types, and then the tabulator and the return key."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "hookcheck"
    command.write_text(COMMAND)
    command.chmod(0o755)
    for name in ("start", ".zshrc"):
        (folder / name).write_text(START[shell])
    words = {"HOME": str(folder), "ZDOTDIR": str(folder), "PATH": f"{command.parent}:{os.environ['PATH']}"}
    environment = {**os.environ, **words, "TERM": "dumb", "PYTHONPATH": str(SRC)}
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        os.execvpe(shell, [shell, *STARTED[shell]], environment)
    try:
        os.write(terminal, f"hookcheck {typed}\t\r".encode())
        limit = time.monotonic() + PATIENCE
        while not (folder / "called").exists() and time.monotonic() < limit:
            if select.select([terminal], [], [], 0.1)[0]:
                os.read(terminal, 9000)  # a terminal that nobody reads is full after a few kilobytes
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    return (folder / "called").read_text().splitlines()


@pytest.mark.parametrize("shell", sorted(STARTED))
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("support --since=1.12", ["support", "--since=1.12.1"]),
        pytest.param("support --since 1.12", ["support", "--since", "1.12.1"], marks=pytest.mark.slow),
        pytest.param(
            "verify x.py --torch=1.13.1,2.6", ["verify", "x.py", "--torch=1.13.1,2.6.0"], marks=pytest.mark.slow
        ),
        pytest.param("support --reports=fold", ["support", "--reports=folded.gz"], marks=pytest.mark.slow),
    ],
)
def test_a_shell_completes(shell: str, typed: str, completed: list[str], tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "folded.gz").touch()
    assert called(shell, typed, tmp_path) == completed
