"""Which branches of torch's hook code make a difference to a clause? Each is forced, and what reaches it is run again.

What reaches which lines is traced once. A branch is forced in a process of its own, so that whatever it spoils, ends or
keeps busy harms nothing else; what reaches it runs there, the quickest first, until a clause sees a difference that the
ledger does not explain. The clause that saw it last time is asked before all others.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Union

import torch

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.hooks.kinds import KINDS
from hookcheck.probe.run import unavailable
from hookcheck.programs.check import NotOffered, NotRun
from hookcheck.programs.program import Program
from hookcheck.topology.model import Topology

from .branches import MODULES, Branch, branches, source
from .engine import release
from .networks import BY_HAND
from .on_networks import catching
from .on_programs import changed, excuses, soundly, wrong
from .samples import deviations, sound

ENOUGH, SECONDS, PATIENCE = 60, 90, 900
"""After how much processor time no further run is asked about a branch, some 40 seconds being the most that they need;
how much one that never ends may take in all; and how long one may wait for something that never comes."""

RECORD = Path(__file__).with_name("branches.jsonl")
"""What the last look at all branches came to, on torch 2.13.0: lines as a `BranchLog` writes them."""

QUICK = 0.1
"""Seconds of processor time that a run may take, so that a branch which nothing sees costs seconds, not minutes."""

ALWAYS_RUN = ("situations", "interactions")
"""Chapters that are run nevertheless: each of their programs runs hundreds of small ones."""

CRASH, NO_END = "a crash", "no end"
"""What a forced branch may come to instead of a clause that sees it."""

Line = tuple[str, int]
Run = Union[Program, "tuple[Topology, str]"]
"""What is run: a program, or a network by hand with a hook kind."""


class _Traced(NamedTuple):
    """A run, the processor time that it takes, and the lines of torch's hook code that it reaches."""

    seconds: float
    run: Run
    lines: frozenset[Line]


@dataclass(frozen=True)
class Reaching:
    """The ``runs``, the quickest first, and for each line of torch's hook code the numbers of those that reach it."""

    runs: Sequence[Run]
    lines: dict[Line, tuple[int, ...]]

    def of(self, branch: Branch) -> list[Run]:
        """What reaches a branch, the quickest first."""
        path = source(branch.module)
        numbers = {number for line in branch.lines for number in self.lines.get((path, line), ())}
        return [self.runs[number] for number in sorted(numbers)]


def all_runs() -> list[Run]:
    """All programs that run in this process, and the networks by hand with each hook kind that torch has."""
    here = release(torch.__version__)
    programs = [c for c in CLAUSES.values() if isinstance(c, Program) and not c.alone and release(c.since) <= here]
    kinds = [kind.name for kind in KINDS.values() if release(kind.since) <= here]
    nets = [(net, kind) for net in BY_HAND.values() for kind in kinds if not unavailable(net, None)]
    return [*programs, *nets]


def reaching(runs: Sequence[Run]) -> Reaching:
    """Which lines of torch's hook code each of ``runs`` reaches; what is slow is left out, and of networks that reach
    the same lines all but one."""
    files = {source(module) for module in MODULES}
    traced = [each for run in runs for each in _traced(run, files)]
    seen: set[frozenset[Line]] = set()
    left: list[_Traced] = []
    for each in sorted(traced, key=lambda each: each.seconds):
        if isinstance(each.run, Program) or each.lines not in seen:
            left.append(each)
            seen.add(each.lines)
    by_line: dict[Line, list[int]] = defaultdict(list)
    for number, each in enumerate(left):
        for line in each.lines:
            by_line[line].append(number)
    return Reaching([each.run for each in left], {line: tuple(numbers) for line, numbers in by_line.items()})


def _traced(run: Run, files: set[str]) -> Iterator[_Traced]:
    """A run, unless it is slow, or this torch or this machine lacks what it needs."""
    with suppress(NotOffered, NotRun):
        soundly(run.id) if isinstance(run, Program) else sound(*run)
        begun = time.process_time()
        _observe(run)
        took = time.process_time() - begun
        if took <= QUICK or (isinstance(run, Program) and run.chapter in ALWAYS_RUN):
            with _tracing(files) as lines:
                _observe(run)
            yield _Traced(took, run, frozenset(lines))


def _observe(run: Run) -> None:
    wrong(run) if isinstance(run, Program) else deviations(*run)


@contextmanager
def _tracing(files: set[str]) -> Iterator[set[Line]]:
    """The lines of ``files`` that are reached while it is open, in all threads."""
    lines: set[Line] = set()

    def within(frame: FrameType, event: str, argument: Any) -> Any:
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return within

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        return within if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    threading.settrace(entered)
    sys.settrace(entered)
    try:
        yield lines
    finally:
        sys.settrace(before)
        threading.settrace(before)


def seen(branch: Branch, runs: Sequence[Run]) -> str:
    """What sees that a branch is forced: a clause, `CRASH` or `NO_END`; empty where nothing does."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_see, args=(theirs, branch, runs))
    child.start()
    theirs.close()
    try:
        if ours.poll(PATIENCE):
            answer: str = ours.recv()
            return answer
        return NO_END
    except EOFError:
        child.join()
        return NO_END if child.exitcode == -signal.SIGXCPU else CRASH
    finally:
        child.kill()
        child.join()


def _see(connection: Any, branch: Branch, runs: Sequence[Run]) -> None:
    """What sees the branch, in a fork. Of the threads that share an operation it has none but its own, and waits for
    the others for ever where the process that it came from has used them (libgomp, torch.quantize_per_tensor)."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    asked = takewhile(lambda run: time.process_time() < ENOUGH, runs)
    connection.send(next(filter(None, (caught(branch, run) for run in asked)), ""))


def caught(branch: Branch, run: Run) -> str:
    """The clause by which a run shows that a branch is forced, or nothing."""
    if isinstance(run, Program):
        try:
            new = changed(run, branch.fault)
        except (NotOffered, NotRun):
            return ""
        return run.id if None in excuses(run, new).values() else ""
    before = sound(*run)
    with branch.fault.patch():
        after = deviations(*run)
    return min(catching([after - before]), default="")


@cache
def functions() -> dict[str, list[Branch]]:
    """All branches of torch's hook code by the function that they are in."""
    by_function: dict[str, list[Branch]] = defaultdict(list)
    for module in MODULES:
        for branch in branches(module):
            by_function[f"{module}.{branch.function}"].append(branch)
    return by_function


@cache
def recorded() -> dict[str, str]:
    """What saw each branch when all were looked at last; empty where nothing did."""
    lines = map(json.loads, RECORD.read_text(encoding="utf-8").splitlines())
    return {name: clause for line in lines for name, clause in line["seen"].items()}


@dataclass
class BranchLog:
    """What sees which branch, function by function; a ``file`` keeps it, one JSON line for each function.

    A line is of one torch and one code of the function: what has changed since is looked at anew.
    """

    file: Path | None = None

    def of(self, function: str) -> list[tuple[str, str]]:
        """The branches of a function by name, each with what sees it."""
        listed = functions()[function]
        names = [branch.name for branch in listed]
        for line in self.file.read_text(encoding="utf-8").splitlines() if self.file and self.file.exists() else ():
            known = json.loads(line)
            if known["torch"] == torch.__version__ and list(known["seen"]) == names:
                return list(known["seen"].items())
        seen_by = dict(zip(names, self._judged(listed)))
        if self.file:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps({'torch': torch.__version__, 'seen': seen_by})}\n")
        return list(seen_by.items())

    @cached_property
    def _reaching(self) -> Reaching:
        return reaching(all_runs())

    def _judged(self, listed: Sequence[Branch]) -> Iterator[str]:
        """What sees each branch; what saw it last time is asked first, then what sees those beside it."""
        beside: list[str] = []
        for branch in listed:
            likely = [CLAUSES.get(id) for id in dict.fromkeys((recorded().get(branch.name, ""), *beside))]
            programs = [clause for clause in likely if isinstance(clause, Program)]
            beside.append(seen(branch, programs) or seen(branch, self._reaching.of(branch)))
            yield beside[-1]
