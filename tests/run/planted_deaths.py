"""Deaths of the process that runs torch, planted as a plugin of pytest (``-p planted_deaths``) in many places at once.

Each of `DEATHS` strikes in one network's hook and in another's build, in one program, and in new networks that
exploration draws; which those are is worked out from ids alone, so that a test can work it out too.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import hookcheck.networks.examine as examine
import hookcheck.probe.run as probe
import hookcheck.run.child as child
from hookcheck.contract.clause import CLAUSES
from hookcheck.programs.program import programs
from hookcheck.suite import conformance_folder
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import read

FAMILY, KIND, CHAPTERS, PLACE = "multi-node", "full_backward", ("handles", "global-hooks"), 3
LIMIT, HANG_LIMIT = 5, 60
"""Seconds of processor time, and by the clock: on a busy machine the one takes many of the other."""


def overflow() -> None:
    """Without end, C calls Python, which calls C."""
    sys.setrecursionlimit(10**8)
    calls: list[Callable[[], None]] = []
    calls.append(ctypes.CFUNCTYPE(None)(lambda: calls[0]()))
    calls[0]()


def exhaust() -> None:
    taken = []
    while True:
        taken.append(bytearray(2**26))


def loop() -> None:
    while True:
        pass


def interrupt() -> None:
    raise KeyboardInterrupt


def fail() -> None:
    raise AssertionError("of hookcheck itself")


def close_all() -> None:
    os.closerange(0, 1000)


DEATHS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "segmentation fault": (lambda: ctypes.string_at(0), "crashed", "signal 11 (SIGSEGV)"),
    "abort": (os.abort, "crashed", "signal 6 (SIGABRT)"),
    "exit": (lambda: os._exit(0), "crashed", "exit code 0"),
    "kill -9": (lambda: os.kill(os.getpid(), signal.SIGKILL), "crashed", "signal 9 (SIGKILL)"),
    "stack overflow": (overflow, "crashed", "signal 11 (SIGSEGV)"),
    "memory": (exhaust, "crashed", "let out MemoryError"),
    "closed descriptors": (close_all, "crashed", "closed its own descriptors"),
    "SystemExit": (lambda: sys.exit(3), "crashed", "let out SystemExit: 3"),
    "KeyboardInterrupt": (interrupt, "crashed", "let out KeyboardInterrupt"),
    "hang in Python": (loop, "timed out", f"still running after {LIMIT} s of processor time"),
    "hang in C": (lambda: ctypes.PyDLL(None).sleep(1000), "timed out", f"still running after {HANG_LIMIT} s"),
}
"""What strikes, and how the case is to end. `PyDLL` keeps the GIL, so that no thread of Python runs either."""

TOPOLOGIES = [identify(topology) for topology in read(conformance_folder() / "corpus", FAMILY)]
IN_HOOK = dict(zip(TOPOLOGIES[::PLACE], (name for name in DEATHS if name != "hang in Python")))
IN_BUILD = {**dict(zip(TOPOLOGIES[1::PLACE], ("segmentation fault", "exit"))), TOPOLOGIES[1 + 2 * PLACE]: "exception"}
PROGRAMS = dict(
    zip(
        (program.id for chapter in CHAPTERS for program in programs(chapter)),
        (name for name in DEATHS if name != "hang in C"),
    )
)


def strikes_explored(id: str) -> str:
    """Which death a new network dies with every hook kind, if any; no hang, which takes its time."""
    deaths = [name for name, (_, outcome, _) in DEATHS.items() if outcome == "crashed"]
    number = int(id, 16) % (2 * len(deaths))
    return deaths[number] if id not in TOPOLOGIES and number < len(deaths) else ""


def _strike(name: str) -> None:
    if name == "exception":
        fail()
    DEATHS[name][0]()


def _striking(name: str, module: str) -> Callable[[Any], None]:
    """A program of a chapter."""

    def act(check: Any) -> None:
        _strike(name)

    act.__module__ = module
    return act


def plant() -> None:
    """Plants all of them, in this process."""
    child.TIME_LIMIT, child.HANG_LIMIT, child.MEMORY_LIMIT = LIMIT, HANG_LIMIT, 2**29
    observe, build, registered = examine.observe, probe.build, probe.registered
    now: list[str] = [""]

    def observing(topology: Any, numbers: Any, kind: Any, *rest: Any) -> Any:
        now[0] = identify(topology) if kind == KIND else ""
        return observe(topology, numbers, kind, *rest)

    def building(topology: Any, *rest: Any) -> Any:
        if identify(topology) in IN_BUILD:
            _strike(IN_BUILD[identify(topology)])
        return build(topology, *rest)

    @contextmanager
    def registering(kind: Any, built: Any, chained: Any, **how: Any) -> Any:
        with registered(kind, built, chained, **how):
            death = IN_HOOK.get(now[0]) or (now[0] and strikes_explored(now[0]))
            if death:
                built.module.register_forward_hook(lambda *_: _strike(death))
            yield

    examine.observe, probe.build, probe.registered = observing, building, registering
    for id, name in PROGRAMS.items():
        CLAUSES[id] = replace(CLAUSES[id], judge=_striking(name, CLAUSES[id].judge.__module__))


if os.environ.get("HOOKCHECK_PLANTED"):
    plant()
