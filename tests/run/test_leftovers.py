"""A run that is cut off: what it says, what it leaves, and how another one goes on with it or takes it away."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from hookcheck.contract.verdict import NOT_RUN, RAN
from hookcheck.errors import HookcheckError
from hookcheck.record.lines import case_line
from hookcheck.record.model import Torch
from hookcheck.record.parts import Part, read_parts
from hookcheck.run.leftovers import NAME, hold, leftovers, reminders, remove_superseded, resumed, run_name
from hookcheck.run.plan import Request

from .test_isolation import processes
from .test_plan import LARGE, SMALL, ask, asked, ran  # noqa: F401 -- a fixture
from .test_plugin import command, environment, record

TORCH = Torch("2.13.0+cpu", "0123abc", None)
FAMILIES = ["--family", "multi-node", "--family", "residual", "--family", "shared-module"]


def cut_off(request: Request, *cases: object) -> Path:
    """Leaves the folder of a run that got as far as ``cases`` and was killed."""
    hold(request, TORCH).close()
    part = Part(request.parts / "cpu" / "main.jsonl")
    for case in cases:
        part.append(case_line(case))  # type: ignore[arg-type]
    part.close()
    return request.parts


@pytest.mark.slow
def test_a_run_that_goes_on_is_no_leftover(asked: Request) -> None:  # noqa: F811
    """The lock is one of processes, so another process has to look."""
    held = hold(asked, TORCH)
    Part(asked.parts / "cpu" / "main.jsonl").append(case_line(ran(SMALL)))
    look = "import sys, pathlib, hookcheck.run.leftovers as l; print(len(l.leftovers(pathlib.Path(sys.argv[1]))))"
    ask = partial(
        subprocess.run,
        [*command(Path())[:1], "-c", look, asked.reports],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ask().stdout == "0\n"
    held.close()
    assert ask().stdout == "1\n"


def test_the_same_request_goes_on_with_it_and_another_is_told_how_it_differs(asked: Request) -> None:  # noqa: F811
    folder = cut_off(asked, ran(SMALL), ran(LARGE))
    (left,) = leftovers(Path(asked.reports))
    assert (left.folder, left.torch, left.started, left.cases) == (folder, TORCH.version, asked.started, 2)
    again = replace(asked, run="another", started="2026-11-22T00:00:00Z")
    assert resumed(again, TORCH, [left]) == asked
    with pytest.raises(HookcheckError, match=r"nothing to resume in .* 2 finished cases, differs in seed; run the"):
        resumed(replace(again, seed=7), TORCH, [left])
    with pytest.raises(HookcheckError, match=r"differs in torch; run the command without --resume"):
        resumed(again, replace(TORCH, version="2.14.0"), [left])
    with pytest.raises(HookcheckError, match=r"nothing to resume in .*: no run was cut off"):
        resumed(again, TORCH, [])


def test_what_can_be_gone_on_with_is_told_and_what_cannot_is_removed(asked: Request) -> None:  # noqa: F811
    folder = cut_off(asked, ran(SMALL))
    empty = cut_off(replace(asked, run="2"))
    spoiled = cut_off(replace(asked, run="3"), ran(SMALL))
    (spoiled / NAME).write_text("{")
    foreign = Path(asked.reports) / ".partial-4"
    foreign.mkdir()
    left = leftovers(Path(asked.reports))
    assert [each.folder for each in left] == [folder]
    assert not any(path.exists() for path in (empty, spoiled, foreign))
    now = replace(asked, run="5")
    (line,) = reminders(now, TORCH, left)
    assert line.endswith("was cut off: --resume goes on with it; it is removed once this run is complete")
    (line,) = reminders(replace(now, seed=7), TORCH, left)
    assert line.endswith(f"its own command with --resume goes on with it; remove {folder} if nobody will")


def test_a_complete_run_removes_what_it_has_all_of(asked: Request) -> None:  # noqa: F811
    mine, other = cut_off(asked, ran(SMALL)), cut_off(replace(asked, run="2", seed=7), ran(SMALL))
    remove_superseded(replace(asked, run="3"), TORCH)
    assert not mine.exists()
    assert other.exists()


def test_no_two_runs_have_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert re.fullmatch(r"20261124T200000Z-\d+", run_name("2026-11-24T20:00:00Z"))


def begun(reports: Path, *workers: str) -> subprocess.Popen[str]:
    """A run that has finished some cases, and goes on."""
    process = subprocess.Popen(
        command(reports, *workers, *FAMILIES, "-q", chapters=("test_networks.py",)),
        env={**environment(), "HOOKCHECK_MARK": str(reports)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # What a shell starts in the background ignores Ctrl-C, and so would its children.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert wait_for(lambda: finished(reports) >= 100 or process.poll() is not None)
    assert process.poll() is None
    return process


def finished(reports: Path) -> int:
    lines = (line for parts in reports.glob(".partial-*/cpu") for line in read_parts(parts) if line["type"] == "case")
    return sum(len(line["topologies"]) * len(line["kinds"]) for line in lines)


def wait_for(condition: Callable[[], bool], seconds: float = 300) -> bool:
    """Whether ``condition`` comes true in time; a busy machine takes its time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def again(reports: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(reports, "-n0", *FAMILIES, "-q", *arguments, chapters=("test_networks.py",)),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_ctrl_c_leaves_a_record_that_says_so_and_a_run_to_go_on_with(tmp_path: Path) -> None:
    process = begun(tmp_path, "-n0")
    seen = finished(tmp_path)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 2, output
    run_record = record(tmp_path / "partial")
    assert not run_record.footer.complete
    assert run_record.footer.stopped == "interrupted by the user"
    assert (run_record.header.label, [path.name for path in (tmp_path / "partial").iterdir()]) == (
        "cut-off",
        [f"torch-{torch.__version__.split('+')[0]}-cut-off-cpu.jsonl.gz"],
    )
    done = [case for case in run_record.cases if case.outcome == RAN]
    assert 100 <= seen <= len(done) < len(run_record.cases) == run_record.header.plan.cases
    assert {(c.outcome, c.reason) for c in run_record.cases if c.outcome != RAN} >= {
        (NOT_RUN, "interrupted by the user")
    }
    hint = re.search(r"^go on with it: python -m pytest (.*)$", output, re.M)
    assert hint
    assert shlex.split(hint[1]) == [
        *command(tmp_path, "-n0", *FAMILIES, "-q", chapters=("test_networks.py",))[3:],
        "--resume",
    ]
    assert not (tmp_path / "records").exists()

    result = again(tmp_path, "--resume")
    assert result.returncode == 0, result.stdout
    whole = record(tmp_path / "partial")
    assert {case.outcome for case in whole.cases} == {RAN}
    assert (whole.header.started, whole.header.label) == (run_record.header.started, "")
    assert not [*tmp_path.glob(".partial-*")]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="it looks for processes in /proc")
def test_a_run_that_is_killed_leaves_no_process_and_nothing_that_it_finished_is_lost(tmp_path: Path) -> None:
    process = begun(tmp_path, "-n2")
    process.kill()
    process.communicate()
    assert wait_for(lambda: not processes(str(tmp_path)), 30), processes(str(tmp_path))
    seen = finished(tmp_path)
    listed = again(tmp_path, "--collect-only", "-v")
    assert f"with {seen:,} finished cases, was cut off: --resume goes on with it" in listed.stdout
    (folder,) = tmp_path.glob(".partial-*")
    before = {path: path.read_bytes() for path in folder.glob("cpu/*.jsonl")}
    result = again(tmp_path, "--resume", "-v")
    assert result.returncode == 0, result.stdout
    assert f"hookcheck: goes on with the run of {record(tmp_path / 'partial').header.started}" in result.stdout
    assert {case.outcome for case in record(tmp_path / "partial").cases} == {RAN}
    assert sum(content.count(b"\n") for content in before.values())
    assert not [*tmp_path.glob(".partial-*")]


@pytest.mark.slow
def test_without_a_run_to_go_on_with_resume_is_refused_in_one_line(tmp_path: Path) -> None:
    result = again(tmp_path, "--resume")
    assert result.returncode == 4
    assert "ERROR: hookcheck: there is nothing to resume in" in result.stdout + result.stderr


def test_a_label_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HookcheckError, match=r"the label 'a/b' is no part of a file's name; use letters, digits"):
        ask(tmp_path, label="a/b")
    assert ask(tmp_path, label="patched-2").label == "patched-2"


def test_the_file_that_marks_a_run_says_what_it_is(asked: Request) -> None:  # noqa: F811
    folder = cut_off(asked)
    content = json.loads((folder / NAME).read_text())
    assert content["started"] == asked.started
    assert content["identity"]["families"] == ["multi-node"]
