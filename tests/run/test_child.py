"""The process that runs torch: what it answers, how it is lost, and that nothing of it stays behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import hookcheck.run.child as module
from hookcheck.collector import paused
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import applying, load
from hookcheck.contract.verdict import CRASHED, TIMED_OUT, CaseResult
from hookcheck.run.child import Child
from hookcheck.run.examiner import Examiner, Lost, Task
from hookcheck.suite import conformance_folder
from hookcheck.topology.corpus import read

FAMILY, KINDS = "multi-node", ("full_backward", "forward")
TOPOLOGY = read(conformance_folder() / "corpus", FAMILY)[0]
TASK = Task(FAMILY, TOPOLOGY, KINDS, "cpu", "corpus", "share")
EXAMINER = Examiner(tuple(CLAUSES.values()), {"cpu": applying(load(), str(torch.__version__), "cpu")})

needs_fork = pytest.mark.skipif(module._method() != "fork", reason="what is planted here does not get into a spawn")


class Acting(Examiner):
    """Does with each task what it was given, once one case of it has run."""

    def __init__(self, act: Callable[[], Any]) -> None:
        super().__init__((), {})
        self.act = act

    def perform(self, task: Task, ran: Callable[[], None] = lambda: None) -> list[CaseResult]:
        ran()
        self.act()
        return []


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    all_children: list[Child] = []

    def child(examiner: Examiner, **settings: Any) -> Child:
        all_children.append(Child(examiner, tmp_path / "scratch", **settings))
        return all_children[-1]

    yield child
    for each in all_children:
        each.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_it_says_what_this_process_would(children: Callable[..., Child], method: str) -> None:
    if method == "fork" and module._method() != "fork":
        pytest.skip("this machine has a CUDA device, which does not survive a fork")
    child = children(EXAMINER, method=method)
    assert child.perform(TASK) == EXAMINER.perform(TASK)
    assert child.peak_memory() > 10


def lost(child: Child) -> Lost:
    with pytest.raises(Lost) as caught:
        child.perform(TASK)
    return caught.value


@needs_fork
def test_what_comes_out_of_a_case_ends_the_process_and_is_told(children: Callable[..., Child]) -> None:
    def refuse() -> None:
        raise SystemExit(3)

    end = lost(children(Acting(refuse)))
    assert (end.outcome, end.reason, end.ran) == (CRASHED, "the case let out SystemExit: 3", 1)


@pytest.mark.slow
@needs_fork
def test_a_case_that_goes_on_for_too_long_is_ended(
    children: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIME_LIMIT", 1)
    monkeypatch.setattr(module, "HANG_LIMIT", 3)
    end = lost(children(Acting(lambda: time.sleep(100))))
    assert (end.outcome, end.reason, end.ran) == (TIMED_OUT, "still running after 3 s", 1)


@pytest.mark.slow
@needs_fork
def test_a_case_that_works_for_too_long_is_ended(
    children: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIME_LIMIT", 1)

    def work() -> None:
        while True:
            pass

    end = lost(children(Acting(work)))
    assert (end.outcome, end.reason, end.ran) == (TIMED_OUT, "still running after 1 s of processor time", 1)


@pytest.mark.slow
@needs_fork
def test_a_case_that_waits_for_the_processor_is_not_lost(
    children: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that is busy a case takes long by the clock, and little processor time."""
    monkeypatch.setattr(module, "TIME_LIMIT", 1)
    assert children(Acting(lambda: time.sleep(4))).perform(TASK) == []


@needs_fork
def test_what_the_session_left_to_collect_is_not_ended_in_the_fork(
    children: Callable[..., Child], tmp_path: Path
) -> None:
    """What a session holds may need threads to end that a fork does not have: ended there, it crashes."""
    session, ended = os.getpid(), tmp_path / "ended"

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            if os.getpid() != session:
                ended.write_text("in the fork")

    with paused():
        Garbage()
        children(Acting(gc.collect)).perform(TASK)
    assert not ended.exists()


@needs_fork
def test_torch_computes_on_the_threads_that_are_asked_for(children: Callable[..., Child], tmp_path: Path) -> None:
    def write() -> None:
        (tmp_path / "threads").write_text(str(torch.get_num_threads()))

    examiner = Acting(write)
    examiner.threads = 2
    children(examiner).perform(TASK)
    assert (tmp_path / "threads").read_text() == "2"


@needs_fork
def test_a_process_that_is_killed_between_two_tasks_loses_none(children: Callable[..., Child]) -> None:
    child = children(EXAMINER)
    first = child.perform(TASK)
    assert child._process
    assert child._process.pid
    os.kill(child._process.pid, signal.SIGKILL)
    assert child.perform(TASK) == first


@needs_fork
def test_ctrl_c_ends_the_process_too_and_a_later_task_has_a_new_one(
    children: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    child = children(EXAMINER)
    first = child.perform(TASK)
    before = child._process
    assert before

    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module.Connection, "poll", interrupt)
        with pytest.raises(KeyboardInterrupt):
            child.perform(TASK)
    assert before.exitcode in (-signal.SIGKILL, module.CUT_OFF)  # it may notice before it is killed
    assert child.perform(TASK) == first


@needs_fork
def test_what_a_case_starts_and_writes_goes_with_the_process(children: Callable[..., Child], tmp_path: Path) -> None:
    import tempfile

    def start() -> None:
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        (tmp_path / "other").write_text(str(other.pid))
        (tmp_path / "folder").write_text(tempfile.gettempdir())
        os.kill(os.getpid(), signal.SIGKILL)

    lost(children(Acting(start)))
    assert (tmp_path / "folder").read_text() == str(tmp_path / "scratch")
    pid = int((tmp_path / "other").read_text())
    end = time.monotonic() + 10
    while _runs(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]
    except FileNotFoundError:
        return False


@needs_fork
def test_a_case_may_start_processes_of_its_own(children: Callable[..., Child], tmp_path: Path) -> None:
    import multiprocessing

    def start() -> None:
        process = multiprocessing.get_context("fork").Process(target=(tmp_path / "there").touch)
        process.start()
        process.join()

    children(Acting(start)).perform(TASK)
    assert (tmp_path / "there").exists()


@needs_fork
def test_nothing_that_the_process_sets_is_set_here(children: Callable[..., Child]) -> None:
    before = {**os.environ}, torch.get_num_threads()
    children(EXAMINER).perform(TASK)
    assert ({**os.environ}, torch.get_num_threads()) == before
