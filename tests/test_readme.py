"""Does the README tell the truth? Its commands are those that CI runs, and its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_ci_runs_the_two_commands_of_the_readme() -> None:
    commands = [line for block in re.findall(r"```sh\n(.*?)```", README, re.S) for line in block.splitlines()]
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert {command for command in commands if command.startswith("sh install.sh")} == {
        line for line in run if line.startswith("sh install.sh") and "pytest" in line
    }


def test_every_command_is_in_the_readme() -> None:
    assert set(main.commands) == set(re.findall(r"\| `hookcheck ([\w-]+)", README))


def test_the_profiles_are_as_the_readme_says() -> None:
    assert PROFILES == {"smoke": 5, "default": 125, "thorough": 2000, "soak": ROUND}
    assert len(set(SMOKE) - {PROGRAM}) == 2
    one_line = " ".join(README.split())
    for text in (
        "125 each, 2,000 with `--hypothesis-profile thorough`",
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
