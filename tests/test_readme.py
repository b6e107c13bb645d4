"""Does the README tell the truth? Its commands are those that CI runs, and its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path

from hookcheck.cli import main
from hookcheck.plugin import PROFILES
from hookcheck.topology.families import FAMILIES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_ci_runs_the_two_commands_of_the_readme() -> None:
    commands = [line for block in re.findall(r"```sh\n(.*?)```", README, re.S) for line in block.splitlines()]
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [command for command in commands if command.startswith("sh install.sh")] == [
        line for line in run if line.startswith("sh install.sh") and "pytest" in line
    ]


def test_every_command_is_in_the_readme() -> None:
    assert set(main.commands) == set(re.findall(r"\| `hookcheck (\w+)", README))


def test_the_profiles_are_as_the_readme_says() -> None:
    assert PROFILES == {"smoke": 5, "default": 60, "thorough": 2000}
    for text in ("60 each", "5 with `--hypothesis-profile smoke`", "2,000 with"):
        assert text in README


def test_the_picture_shows_every_family() -> None:
    for family in FAMILIES:
        assert all(word in README for word in family.split("-"))
