"""Does the README tell the truth? Its commands are those that CI runs, and its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.committed import drawn_from_committed_records

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.cli import main
from hookcheck.programs.program import PROGRAM
from hookcheck.record.reading import read
from hookcheck.report.summary import summary
from hookcheck.run.plan import SMOKE
from hookcheck.run.plugin import PROFILES
from hookcheck.run.soak import ROUND

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_ci_runs_the_two_commands_of_the_readme() -> None:
    commands = [line for block in re.findall(r"```sh\n(.*?)```", README, re.S) for line in block.splitlines()]
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert {command for command in commands if command.startswith("sh install.sh")} == {
        line for line in run if line.startswith("sh install.sh") and "pytest" in line
    }


def test_every_command_is_in_the_readme() -> None:
    assert set(main.commands) == set(re.findall(r"\| `hookcheck ([\w-]+)", README))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_options_of_the_commands_on_a_page_are_there(page: Path) -> None:
    """Of those alone that begin a line or stand in code; ``run`` hands what it does not know on to pytest."""
    text = page.read_text(encoding="utf-8")
    for name, rest in re.findall(r"(?:^|`|\$ )hookcheck ([a-z-]+)([^`\n|]*)", text, re.M):
        if name in main.commands and name != "run":
            options = {option for parameter in main.commands[name].params for option in parameter.opts}
            assert set(re.findall(r"(?<= )--?[a-z][a-z-]*", rest.partition(" #")[0])) <= options, f"{name}{rest}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_files_that_a_page_links_to_are_there(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


def test_the_profiles_are_as_the_readme_says() -> None:
    assert PROFILES == {"smoke": 5, "default": 33, "thorough": 2000, "soak": ROUND}
    assert len(set(SMOKE) - {PROGRAM}) == 2
    one_line = " ".join(README.split())
    for text in (
        "33 each, 2,000 with `--hypothesis-profile thorough`",
        "two families with 5 new networks each",
        "With `--hypothesis-profile soak` it goes on, round after round, until it is stopped; `--topologies N` ends it",
    ):
        assert text in one_line


@drawn_from_committed_records
def test_the_picture_is_what_a_run_prints() -> None:
    (picture,) = re.findall(r"^```\n(\$ .*?)^```", README, re.S | re.M)
    newest = read(ROOT / "reports" / "records" / "torch-2.13.0-cpu.jsonl.gz")
    lines = picture.splitlines()
    for line in summary(newest, 80):
        # Which known deviations a run counts differs by one or two, where threads race.
        assert re.sub(r"\d", "0", line) in [re.sub(r"\d", "0", shown) for shown in lines]
