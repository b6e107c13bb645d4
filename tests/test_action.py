"""Do the action and the workflows call what there is, and does the nightly run keep one issue?"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

import click
import pytest

from hookcheck.cli import main

ROOT = Path(__file__).parents[1]
SCRIPTS = [ROOT / "action.yml", ROOT / ".ci" / "nightly-issue", *(ROOT / ".github" / "workflows").glob("*.yml")]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_the_commands_and_options_are_there(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    code = "\n".join(line for line in lines if not re.match(r"\s*(#|(- )?name:|description:)", line))
    calls = re.findall(r"(?<![\w/@-])hookcheck ([a-z-]+)([^|;\n)]*)", code)
    assert calls or path.name == "ci.yml"
    for name, rest in calls:
        command = main.get_command(click.Context(main), name)
        assert command, name
        known = {option for parameter in command.params for option in parameter.opts}
        if name != "run":  # which hands its options to pytest
            assert set(re.findall(r"--[a-z-]+", rest)) <= known, rest


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)


@pytest.mark.parametrize(
    ("record", "worse", "code", "open_issue", "calls"),
    [
        ("new.jsonl.gz", 0, "0", "", []),
        ("new.jsonl.gz", 0, "0", "7", ["issue close 7"]),
        ("new.jsonl.gz", 1, "0", "", ["issue create"]),
        ("new.jsonl.gz", 1, "1", "7", ["issue edit 7"]),
        ("new.jsonl.gz", 0, "1", "", ["issue create"]),
        ("new.jsonl.gz", 2, "0", "7", ["issue edit 7"]),
        ("", 0, "4", "", ["issue create"]),
    ],
)
def test_one_issue_is_opened_updated_and_closed(
    tmp_path: Path, record: str, worse: int, code: str, open_issue: str, calls: list[str]
) -> None:
    log = tmp_path / "calls"
    program(tmp_path, "hookcheck", f'echo "told by $1"; [ "$1" = diff ] && exit {worse}; exit 1')
    program(
        tmp_path,
        "gh",
        f'echo "$*" >> {log}\n[ "$2" = list ] && echo "{open_issue}"\n'
        f'for word in "$@"; do [ -f "$word" ] && cp "$word" {tmp_path}/body; done; exit 0',
    )
    given = {"RECORD": record, "CODE": code, "BASELINE": "2.15.0", "RUN": "https://example.org/1"}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([ROOT / ".ci" / "nightly-issue"], env={**os.environ, **given, "PATH": path}, check=True)
    listed, *others = log.read_text().splitlines()
    assert listed.startswith("issue list --state open")
    assert [call[: len(expected)] for call, expected in zip(others, calls)] == calls
    assert len(others) == len(calls)
    if calls and "close" not in calls[0]:
        body = (tmp_path / "body").read_text()
        assert ("told by diff" in body) is bool(record)
        assert "[The run](https://example.org/1)" in body
