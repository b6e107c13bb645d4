"""The outputs in the tutorials, drawn anew: each command that begins with ``$`` is run as on a terminal of 80 columns.

python docs/draw_tutorials.py [NAME…]
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "tutorials"
SOURCES = FOLDER.parents[1] / "src"
_BLOCK = re.compile(r"^```console\n(?P<command>\$ [^\n]*)\n(?P<output>.*?)^```$", re.MULTILINE | re.DOTALL)
_TIME = re.compile(r"in \d+\.\d+s( \(\d+:\d+:\d+\))?")


def drawn(text: str, environment: Path | None = None) -> str:
    """A tutorial with the outputs of today; ``environment`` is a folder whose modules come first on the path."""

    def again(match: re.Match[str]) -> str:
        return f"```console\n{match['command']}\n{output(match['command'][2:], environment)}```"

    return _BLOCK.sub(again, text)


def output(command: str, environment: Path | None = None) -> str:
    """What a command prints in a copy of the folder of tutorials; times and folders are the same everywhere."""
    name, *arguments = shlex.split(command)
    program = [sys.executable, *(["-m", "hookcheck"] if name == "hookcheck" else []), *arguments]
    path = os.pathsep.join(str(folder) for folder in (environment, SOURCES) if folder)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    settings = {
        **inherited,
        "PYTHONPATH": path,
        "COLUMNS": "80",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PYTHONHASHSEED": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        for file in FOLDER.glob("*.py"):
            (Path(folder) / file.name).write_bytes(file.read_bytes())
        here, there = pty.openpty()
        with subprocess.Popen(program, cwd=folder, env=settings, stdout=there, stderr=subprocess.DEVNULL) as process:
            os.close(there)
            said = _read(here)
        status = f"(exit code {process.returncode})\n" if process.returncode else ""
        return _TIME.sub("in 9.99s", _without(said, Path(folder).resolve())) + status


def _read(terminal: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end is closed
            part = b""
        if not part:
            os.close(terminal)
            return b"".join(parts).decode("utf-8").replace("\r\n", "\n")
        parts.append(part)


def _without(said: str, folder: Path) -> str:
    # what a carriage return has written over, such as how far a run is, nobody sees at its end
    lines = (line.rpartition("\r")[2].rstrip() for line in said.replace(f"{folder}/", "").rstrip("\n").split("\n"))
    return "".join(f"{line}\n" for line in lines)


def environment_of(tutorial: Path) -> Path | None:
    """The folder beside a tutorial that changes the torch that it is about, if it has one."""
    folder = tutorial.with_name(tutorial.stem.replace("-", "_"))
    return folder if folder.is_dir() else None


if __name__ == "__main__":
    pages = {page.stem: page for page in sorted(FOLDER.glob("*.md"))}
    parser = argparse.ArgumentParser(description="Draws the outputs in the tutorials anew.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these, of {', '.join(pages)}")
    names = parser.parse_args().names
    if not pages.keys() >= {*names}:
        parser.error(f"there are only {', '.join(pages)}")
    for page in [pages[name] for name in names or pages]:
        page.write_text(drawn(page.read_text(encoding="utf-8"), environment_of(page)), encoding="utf-8")
