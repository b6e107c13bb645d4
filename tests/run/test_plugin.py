"""The suite as people run it: pytest on ``conformance/``, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hookcheck.contract.verdict import NOT_RUN, RAN
from hookcheck.record.model import Record, tally
from hookcheck.record.reading import read
from hookcheck.suite import conformance_folder

FAMILY, KINDS = "multi-node", ("full_backward", "global_full_backward")
ONE_FAMILY = ["--family", FAMILY, "--kind", KINDS[0], "--kind", KINDS[1], "--hypothesis-profile", "smoke"]
SOURCES = str(Path(__file__).resolve().parents[2] / "src")


def environment(*folders: Path) -> dict[str, str]:
    """Without what an outer pytest has set, and with ``folders`` first on the path of modules."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    return {**inherited, "PYTHONPATH": os.pathsep.join([*map(str, folders), SOURCES]), "COLUMNS": "200"}


def command(reports: Path, *arguments: str, chapters: tuple[str, ...] = ("",)) -> list[str]:
    files = [str(conformance_folder() / chapter) for chapter in chapters]
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *files, "--reports", str(reports), *arguments]


def run(reports: Path, *arguments: str, before: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
    """The suite on all clauses about networks, in this process unless ``arguments`` say otherwise."""
    chapters = ("test_networks.py", "test_exploration.py")
    workers = () if any(word.startswith("-n") for word in arguments) else ("-n0",)
    return subprocess.run(
        command(reports, *workers, *arguments, chapters=chapters),
        env=environment(*before),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def record(folder: Path) -> Record:
    (path,) = folder.glob("*.jsonl.gz")
    return read(path)


def error(result: subprocess.CompletedProcess[str]) -> str:
    """The one line that a run was refused with."""
    assert result.returncode == 4, result.stdout + result.stderr
    (line,) = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
    return line


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("--device", "tpu"), "unknown device 'tpu'; choose from cpu, cuda, all"),
    (("--family", "cousins"), "unknown family 'cousins'; choose from single-node, "),
    (("--kind", "sideways"), "unknown hook kind 'sideways'; choose from backward, "),
    (("--clause", "XX-1"), "unknown clause 'XX-1'; `hookcheck list` shows them all"),
    (("--hypothesis-profile", "deep"), "unknown profile 'deep'; choose from smoke, default, thorough, soak"),
    (("--baseline", "2.6.0"), "--baseline '2.6.0' is no file, and no version of torch with a record in "),
    (("--threads", "-1"), "torch cannot compute on -1 threads; --threads takes 1 or more"),
    (("--chapter", "firring"), "unknown chapter 'firring'; choose from firing"),
]


ONE_AFTER_THE_OTHER = """
import sys

import pytest

for options in {options}:
    print(int(pytest.main([*sys.argv[1:], *options])), flush=True)
"""


@pytest.mark.slow
def test_an_unknown_name_is_refused_in_one_line(tmp_path: Path) -> None:
    """One process runs pytest for each, since none gets so far as to leave anything there."""
    reports, code = tmp_path / "reports", ONE_AFTER_THE_OTHER.format(options=[options for options, _ in REFUSED])
    _, _, _, *arguments = command(reports, "-n0", chapters=("test_networks.py",))
    command_line = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command_line, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4"] * len(REFUSED)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == len(REFUSED)
    for line, (_, message) in zip(lines, REFUSED):
        assert line.startswith(f"ERROR: hookcheck: {message}")
    assert not reports.exists()


def test_a_missing_torch_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('no torch here')\n")
    line = error(run(tmp_path / "reports", before=(tmp_path,)))
    assert line.startswith("ERROR: hookcheck: torch cannot be imported (no torch here); install the release that you ")


@pytest.mark.slow
def test_reports_that_cannot_be_written_are_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = error(run(tmp_path / "file" / "reports"))
    assert line.startswith("ERROR: hookcheck: the reports folder ")
    assert line.endswith("choose another with --reports")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (("--chapter", "systems"), {"test_programs.py"}),
        (("--chapter", "handles"), {"test_programs.py"}),
        (("--chapter", "firing", "--family", "residual", "--kind", "backward"), {"test_networks.py"}),
    ],
)
def test_a_chapter_is_all_that_runs(tmp_path: Path, arguments: tuple[str, ...], files: set[str]) -> None:
    """Exploring goes with any selection of clauses, and is left out here by its file."""
    listed = subprocess.run(
        command(tmp_path, "-n0", *arguments, "--collect-only", "-q", "--ignore-glob=*exploration*"),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert {Path(line.partition("::")[0]).name for line in listed.splitlines() if "::" in line} == files


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_device_that_is_not_there_is_not_run_and_said_to_be(tmp_path: Path) -> None:
    result = run(tmp_path, "--device", "cuda", *ONE_FAMILY, "-rs")
    assert result.returncode == 0
    assert "passed" not in result.stdout.splitlines()[-1]
    assert "not run: this machine has no cuda device that torch can use" in result.stdout
    assert "\ncuda: not run, this machine has no cuda device that torch can use" in result.stdout
    assert not [*tmp_path.rglob("*.jsonl*")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of one family on sound torch: its reports folder and what it printed."""
    reports = tmp_path_factory.mktemp("reports")
    result = run(reports, *ONE_FAMILY)
    assert result.returncode == 0, result.stdout
    return reports, result.stdout


@pytest.mark.slow
def test_a_run_of_a_part_keeps_its_record_apart(whole: tuple[Path, str]) -> None:
    reports, output = whole
    assert sorted(path.name for path in reports.iterdir()) == ["partial"]
    assert record(reports / "partial").footer.complete
    assert f"record: {reports / 'partial'}" in output


def test_all_that_was_planned_ran_or_is_accounted_for(whole: tuple[Path, str]) -> None:
    run_record = record(whole[0] / "partial")
    counts = dict(run_record.footer.counts)
    assert counts == tally(run_record.cases)
    assert counts.pop("planned") == sum(counts.values()) == len(run_record.cases)
    corpus = [case for case in run_record.cases if case.origin == "corpus"]
    assert len(corpus) == run_record.header.plan.cases == run_record.header.plan.corpus[FAMILY].count * len(KINDS)
    assert {case.outcome for case in run_record.cases} == {RAN}
    assert {case.origin for case in run_record.cases} == {"corpus"}
    assert 0 < run_record.footer.explored <= 5


def test_every_setting_of_the_run_is_printed(whole: tuple[Path, str]) -> None:
    reports, output = whole
    assert f"hookcheck: torch {torch.__version__}, device cpu, profile smoke (5 new topologies a family" in output
    assert f"reports in {reports}" in output
    assert re.search(rf"hookcheck: families {FAMILY}; hook kinds {', '.join(KINDS)}; all \d+ clauses\n", output)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["-n1", "-n2"])
def test_workers_see_what_one_process_sees(whole: tuple[Path, str], tmp_path: Path, workers: str) -> None:
    result = run(tmp_path, *ONE_FAMILY, workers)
    assert result.returncode == 0, result.stdout
    alone, spread = record(whole[0] / "partial"), record(tmp_path / "partial")
    assert spread.cases == alone.cases
    assert spread.counterexamples == alone.counterexamples
    assert spread.footer.counts == alone.footer.counts
    assert spread.footer.explored == alone.footer.explored


@pytest.mark.slow
def test_one_cell_is_run_by_its_name_and_the_rest_said_to_be_left_out(tmp_path: Path) -> None:
    id = f"test_networks.py::test_network[GI-01:{FAMILY}:full_backward:cpu]"
    done = subprocess.run(
        command(tmp_path, "-n0", chapters=(id,)), env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    run_record = record(tmp_path / "partial")
    ran = {(c.family, c.kind) for c in run_record.cases if c.outcome == RAN}
    assert ran == {(FAMILY, "full_backward")}
    left_out = {(c.outcome, c.reason) for c in run_record.cases if (c.family, c.kind) not in ran}
    assert left_out == {(NOT_RUN, "left out of this run by its selection of tests")}


@pytest.mark.slow
def test_one_program_is_run_by_its_name(tmp_path: Path) -> None:
    id = "test_programs.py::test_program[FW-08:program:forward-hooks:cpu]"
    done = subprocess.run(
        command(tmp_path, "-n0", chapters=(id,)), env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert [c.topology for c in record(tmp_path / "partial").cases if c.outcome == RAN] == ["FW-08"]


PLANTED = """
from faults.engine import each, receiving

fault = receiving(each(lambda g: g * 2))
fault.__enter__()
"""


@pytest.mark.slow
def test_a_red_cell_shows_the_network_and_both_sides(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    reports = tmp_path / "reports"
    result = run(reports, "-p", "planted", *ONE_FAMILY, before=(tmp_path, Path(__file__).parents[2]))
    assert result.returncode == 1
    assert " failed, " in result.stdout
    promise = "promise:  grad_input[i] is the gradient with respect to the i-th positional argument"
    for text in (
        f"GI-01 ({FAMILY}, full_backward): wrong values at net",
        promise,
        "expected: grad_input",
        "observed: ([",
    ):
        assert text in result.stdout
    assert "import torch\nfrom torch import nn\n" in result.stdout
    once = [line for line in result.stdout.splitlines() if line.startswith("GI-01 ") and ": wrong values at" in line]
    assert len(once) == 1
    assert f"{FAMILY} with global_full_backward" in result.stdout
    run_record = record(reports / "partial")
    explored = {c.topology for c in run_record.cases if c.origin == "exploration" and c.deviations}
    sources = {c.topology: c.source for c in run_record.counterexamples}
    assert [id for id in explored if "net = nn.Linear(1, 1, bias=False)" in sources.get(id, "")]


UNUSED_ENTRY = """
from datetime import date

from packaging.specifiers import SpecifierSet

import hookcheck.run.plan
from hookcheck.contract.ledger import Entry

entry = Entry(
    id="never-seen",
    clauses=("GI-01",),
    kinds=("full_backward",),
    torch=SpecifierSet(">=1.7"),
    instead=("wrong values",),
    why="It was wrong once.",
    link="https://example.org",
    reviewed=date(2026, 1, 31),
)
hookcheck.run.plan.load = lambda: (entry,)
"""
WHOLE = """
hookcheck.run.plan.Request.whole = property(lambda self: True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("planted", "fails"), [(UNUSED_ENTRY + WHOLE, True), (UNUSED_ENTRY, False)])
def test_an_entry_that_explains_nothing_anywhere_fails_a_whole_run(tmp_path: Path, planted: str, fails: bool) -> None:
    (tmp_path / "planted.py").write_text(planted)
    reports = tmp_path / "reports"
    asked = ("--family", FAMILY, "--kind", KINDS[0], "--chapter", "gradients")
    result = subprocess.run(
        command(reports, "-n0", "-p", "planted", *asked, chapters=("test_networks.py",)),
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    line = "FAILED ledger: never-seen says that GI-01 deviate under full_backward hooks, and no family shows it: narrow"
    assert (line in result.stdout) is fails, result.stdout
    assert result.returncode == (1 if fails else 0)
    assert (reports / ("records" if fails else "partial")).is_dir()


@pytest.mark.slow
def test_a_soak_says_how_far_it_is_and_ends(tmp_path: Path) -> None:
    asked = ("--family", FAMILY, "--kind", KINDS[0], "--hypothesis-profile", "soak", "--topologies", "20")
    result = subprocess.run(
        command(tmp_path, "-n0", *asked, chapters=("test_exploration.py",)),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout
    assert re.search(r"^soak 1/1, cpu: [\d,]+ of 20 new topologies, round 1, \d+ a second, ", result.stderr, re.M)
    assert "soak 1/1" not in result.stdout
    assert record(tmp_path / "partial").footer.explored >= 20


INTERRUPTED = """
import hookcheck.run.session

def outcomes(*arguments):
    raise KeyboardInterrupt

outcomes.__code__ = outcomes.__code__.replace(co_linetable=b"")
hookcheck.run.session.outcomes = outcomes
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 10), reason="every instruction has a line")
def test_ctrl_c_at_an_instruction_without_a_line_ends_the_run_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(INTERRUPTED)
    result = subprocess.run(
        command(tmp_path, "-n0", "-p", "planted", "--family", FAMILY, chapters=("test_networks.py",)),
        env={**environment(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2, result.stdout + result.stderr
    assert "co_linetable" not in result.stdout + result.stderr
    assert "KeyboardInterrupt" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["planted.py"]  # nothing had run
