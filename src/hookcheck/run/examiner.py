"""What is run on torch for a session: tasks, each a topology with some hook kinds, or a program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import hookcheck.clauses  # noqa: F401 -- declares the clauses, which a process of its own finds by their ids
from hookcheck.contract.clause import CLAUSES, Clause
from hookcheck.contract.evidence import Evidence
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import NOT_RUN, CaseResult
from hookcheck.errors import device_is_full
from hookcheck.networks.examine import examine
from hookcheck.programs.program import Program
from hookcheck.programs.running import examine_program
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology


@dataclass(frozen=True)
class Task:
    """Cases that torch runs together: ``subject``, a topology or the id of a program, with each of ``kinds``.

    ``share`` names the part of the run that it belongs to: within one, known deviations are put into words only where
    they are the smallest of their sort.
    """

    family: str
    subject: Topology | str
    kinds: tuple[str, ...]
    device: str
    origin: str
    share: str

    @property
    def id(self) -> str:
        """The id of the topology or the program."""
        return self.subject if isinstance(self.subject, str) else identify(self.subject)


class Lost(Exception):
    """What runs torch was lost in the middle of a task, of which ``ran`` cases had run.

    ``outcome`` is *crashed* or *timed out*, and ``reason`` says how.
    """

    def __init__(self, outcome: str, reason: str, ran: int) -> None:
        """See the class."""
        super().__init__(reason)
        self.outcome, self.reason, self.ran = outcome, reason, ran


class Runner(Protocol):
    """What runs tasks: an `Examiner` in this process, or a `hookcheck.run.child.Child` in one of its own."""

    def perform(self, task: Task) -> list[CaseResult]:
        """The results of all cases of ``task``. Raises `Lost` where it did not get to their end."""

    def peak_memory(self) -> float:
        """The most memory that the process with torch has held, in MiB; NaN where the system does not tell."""

    def close(self) -> None:
        """Frees all that it holds; a later task begins anew."""


@dataclass
class Examiner:
    """Runs tasks in this process, and judges them by ``clauses`` and the ledger of their device.

    A process of its own has torch compute on ``threads`` threads there (see `hookcheck.run.child.use_threads`).
    """

    clauses: tuple[Clause, ...]
    ledgers: dict[str, Ledger]
    threads: int = 0
    _share: str = ""
    _evidence: Evidence = field(default_factory=Evidence)

    def perform(self, task: Task, ran: Callable[[], None] = lambda: None) -> list[CaseResult]:
        """The results of all cases of ``task``; ``ran`` is called after each hook kind that torch has run with."""
        ledger = self.ledgers[task.device]
        if isinstance(task.subject, str):
            program = CLAUSES[task.subject]
            assert isinstance(program, Program)
            return [examine_program(program, ledger, task.device)]
        if task.share != self._share:
            self._share, self._evidence = task.share, Evidence()
        where = (task.device, task.origin, self._evidence)
        try:
            return [*examine(task.subject, task.family, task.kinds, self.clauses, ledger, *where, ran)]
        except Exception as error:
            if not device_is_full(error):
                raise
            reason = f"{task.device} has no memory left for it"
            return [CaseResult(task.family, task.id, kind, task.origin, NOT_RUN, reason) for kind in task.kinds]

    def peak_memory(self) -> float:
        """The most memory that this process has held, in MiB; NaN where the system does not tell."""
        return peak_memory()

    def close(self) -> None:
        """There is nothing to free."""


def outcomes(runner: Runner, task: Task) -> Iterator[CaseResult]:
    """One result for each case of ``task``, whatever befalls the process with torch.

    A case in which it is lost is *crashed* or *timed out*, and the others are run once more. That case is the first
    that had not run; or, where all had, the last one, so that every task comes to its end.
    """
    kinds = list(task.kinds)
    while kinds:
        try:
            yield from runner.perform(replace(task, kinds=tuple(kinds)))
            return
        except Lost as lost:
            kind = kinds.pop(min(lost.ran, len(kinds) - 1))
            yield CaseResult(task.family, task.id, kind, task.origin, lost.outcome, lost.reason)


def peak_memory() -> float:
    """The most memory that this process has held, in MiB; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
