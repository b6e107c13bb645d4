"""The process that runs torch for a session. It may crash, hang or be killed; then another one takes its place.

It is a fork of the session's process, which itself runs no torch: so it starts at once, and has what was imported and
planted there. Where torch can use a CUDA device, or a system cannot fork, it is started anew: CUDA does not survive a
fork. What it is at, the two know by memory that they share: a case that takes the process along sends no message.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import torch

from hookcheck.collector import eased, paused, settle
from hookcheck.contract.verdict import CRASHED, TIMED_OUT, CaseResult
from hookcheck.probe.cuda import compute_exactly
from hookcheck.probe.run import IMPORTED_LATE, available_devices
from hookcheck.programs.check import text_of
from hookcheck.run.examiner import Examiner, Lost, Task, peak_memory

TIME_LIMIT = 240
"""Seconds of processor time that one case may take; the slowest topology of the corpus takes about one with all its
hook kinds, and the slowest program, which compiles each of many hosts (HO-07), has taken 62."""

HANG_LIMIT = 600
"""Seconds that one case may take by the clock: one that waits takes no processor time."""

GLANCE = 1
"""Seconds after which a case that is still running is looked at again."""

MEMORY_LIMIT = 4 * 2**30
"""Bytes of data that the process may hold on a CPU; a whole run takes it to about a quarter."""

PATIENCE = 5
"""Seconds that a process which has cut itself off may take to end."""

CUT_OFF = 113
"""The exit code of a process that has lost its connection."""

BEGUN, RAN, MEMORY = range(3)
"""What the shared numbers say: whether the task has begun, how many of its cases have run, the most MiB ever held."""


class Child:
    """Runs tasks in a process of its own, which starts with the first one; ``method`` is ``fork`` or ``spawn``.

    The process writes its temporary files into the folder ``scratch``, which goes with it.
    """

    def __init__(self, examiner: Examiner, scratch: Path, method: str = "") -> None:
        """``method`` is chosen for this machine where it is empty."""
        self._examiner, self._scratch, self._method = examiner, scratch, method
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None
        self._shared: Any = [0.0, 0.0, 0.0]

    def perform(self, task: Task) -> list[CaseResult]:
        """The results of all cases of ``task``.

        Raises:
            Lost: the process crashed, was killed, or was at one case for longer than `TIME_LIMIT` or `HANG_LIMIT`.
        """
        try:
            answer = self._answer(task)
        except BaseException:  # also Ctrl-C: what it would still say is no answer to what it is asked next
            self.close()
            raise
        if isinstance(answer, str):
            self.close()
            raise Lost(CRASHED, answer, int(self._shared[RAN]))
        return answer

    def peak_memory(self) -> float:
        """The most memory that the process has held, in MiB."""
        return float(self._shared[MEMORY])

    def close(self) -> None:
        """Ends the process, and all that it has started."""
        if self._process is not None and self._connection is not None:
            self._connection.close()
            _kill(self._process)
            self._process.join()
            shutil.rmtree(self._scratch, ignore_errors=True)
        self._process = self._connection = None

    def _answer(self, task: Task) -> list[CaseResult] | str:
        """The results, or in words what came out of a case instead."""
        for _ in range(2):  # it may have been killed since the last task, which is nothing that this one did
            connection = self._started()
            self._shared[BEGUN] = self._shared[RAN] = 0
            with suppress(OSError):
                connection.send(task)
                self._wait(connection)
            with suppress(EOFError, OSError):
                answer: list[CaseResult] | str = connection.recv()
                return answer
            reason, begun = self._ending(), self._shared[BEGUN]
            self.close()
            if begun:
                break
        raise Lost(CRASHED, reason, int(self._shared[RAN]))

    def _wait(self, connection: Connection) -> None:
        """Waits for the answer. Raises `Lost` where one case takes too long."""
        ran, clock, worked = -1.0, 0.0, 0.0
        while not connection.poll(GLANCE):
            if self._shared[RAN] != ran:
                ran, clock, worked = self._shared[RAN], time.monotonic(), self._worked()
            elif self._worked() - worked > TIME_LIMIT:
                raise Lost(TIMED_OUT, f"still running after {TIME_LIMIT} s of processor time", int(ran))
            elif time.monotonic() - clock > HANG_LIMIT:
                raise Lost(TIMED_OUT, f"still running after {HANG_LIMIT} s", int(ran))

    def _worked(self) -> float:
        """The processor time that the process has taken, and what it started and waited for; 0 where no /proc says."""
        assert self._process is not None
        with suppress(OSError):
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
            return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def _started(self) -> Connection:
        if self._connection is None:
            context: Any = multiprocessing.get_context(self._method or _method())
            with suppress(ImportError):  # here, so that each fork has it
                import_module(IMPORTED_LATE)
            self._connection, theirs = context.Pipe()
            self._shared = context.RawArray("d", 3)
            arguments = (self._connection, theirs, self._shared, self._examiner, self._scratch)
            # As a daemon, it is ended where this process ends without a word to it.
            self._process = context.Process(target=_serve, args=arguments, daemon=True)
            with paused():  # until the process has set aside what is there
                self._process.start()
            theirs.close()
        return self._connection

    def _ending(self) -> str:
        """How the process ended, of which nothing more can be read."""
        assert self._process is not None
        self._process.join(PATIENCE)
        code = self._process.exitcode
        if code is None or code == CUT_OFF:
            return "the process of the case closed its own descriptors"
        if code < 0:
            return f"the process of the case was ended by signal {-code} ({signal.Signals(-code).name})"
        return f"the process of the case ended with exit code {code}"


def _method() -> str:
    return "fork" if sys.platform == "linux" and available_devices() == ("cpu",) else "spawn"


def _kill(process: multiprocessing.process.BaseProcess) -> None:
    """Ends the process; it leads a group, so what it has started goes with it."""
    process.kill()
    if process.pid is not None and hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _serve(ours: Connection, theirs: Connection, shared: Any, examiner: Examiner, scratch: Path) -> NoReturn:
    """Answers tasks, in the process that runs torch, until the other end of the connection is closed.

    A case that lets an exception out takes the process along: nobody knows what state it has left.
    """
    gc.freeze()  # what the other process left to collect may need threads to end that a fork does not have
    gc.enable()
    ours.close()  # or this process would be the one that keeps its own connection open
    _settle(scratch, examiner.threads)
    opened = _file(theirs)

    def ran() -> None:
        if _file(theirs) != opened:  # the case has closed it, and is not to be taken for a later one
            os._exit(CUT_OFF)
        shared[RAN] += 1

    share = ""
    with eased():
        while True:
            try:
                task = theirs.recv()
            except (EOFError, OSError):
                os._exit(CUT_OFF)
            if task.share != share:  # what was imported meanwhile stays, and many a program collects
                share = task.share
                settle()
            shared[BEGUN] = 1
            try:
                answer: list[CaseResult] | str = examiner.perform(task, ran)
            except BaseException as raised:  # SystemExit and KeyboardInterrupt are the case's as well
                with suppress(OSError, ValueError):  # the case may have closed what this writes to
                    traceback.print_exc()
                    sys.stderr.flush()
                answer = f"the case let out {text_of(raised).rstrip(': ')}"
            shared[MEMORY] = peak_memory()
            try:
                theirs.send(answer)
            except OSError:
                os._exit(CUT_OFF)


def _file(connection: Connection) -> tuple[int, int] | None:
    """What a connection is to the system; None where it is closed."""
    try:
        state = os.fstat(connection.fileno())
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _settle(scratch: Path, threads: int) -> None:
    """Makes this process one that can be lost: it leads a group, has limits, and ends with the one that started it."""
    multiprocessing.current_process().daemon = False  # or programs could not start processes
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, see prctl(2)
    if hasattr(os, "setsid"):
        os.setsid()
    _limit()
    faulthandler.enable(file=2)  # where pytest captures what the process writes
    scratch.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    use_threads(threads)
    compute_exactly()


def _limit() -> None:
    """No core files; and on a CPU a limit of memory, beyond which this process fails and not another one."""
    try:
        import resource
    except ImportError:
        return
    limits = [(resource.RLIMIT_CORE, 0)]
    if available_devices() == ("cpu",):  # CUDA maps far more than it uses
        limits.append((resource.RLIMIT_DATA, MEMORY_LIMIT))
    for what, most in limits:
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def use_threads(number: int) -> None:
    """Has torch compute on so many threads; 0 is one, unless the environment says how many."""
    if number or "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(number or 1)
