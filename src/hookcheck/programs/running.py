"""Running a program: it is run, in this process or in one of its own, and its facts are held to the ledger."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import torch

import hookcheck.programs.chapters  # noqa: F401 -- declares the programs
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.explaining import Located, explained
from hookcheck.contract.finding import Finding
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.site import EQUAL, PROCESS, Site
from hookcheck.contract.verdict import GAPS, NOT_OFFERED, NOT_RUN, RAN, CaseResult, Deviation
from hookcheck.probe.run import IMPORTED_LATE
from hookcheck.programs.check import Fact, NotOffered, NotRun
from hookcheck.programs.facts import facts_of
from hookcheck.programs.processes import groups_closed
from hookcheck.programs.program import ALONE_HANG_LIMIT, ALONE_LIMIT, ENDS, PROGRAM, WHOLE, Program
from hookcheck.releases.numbers import release


def examine_program(program: Program, ledger: Ledger, device: str = "cpu") -> CaseResult:
    """Runs ``program`` on this torch and says which of its facts are not so."""
    try:
        _possible(program, device)
        with groups_closed():  # a network in DistributedDataParallel leaves the one that it needs
            facts = _alone(program, device) if program.alone else facts_of(program, device)
    except (NotOffered, NotRun) as reason:
        outcome = NOT_OFFERED if isinstance(reason, NotOffered) else NOT_RUN
        return CaseResult(PROGRAM, program.id, program.chapter, "corpus", outcome, str(reason))
    findings = [
        Located(program.id, fact.name, fact.finding, {**fact.features, "fact": frozenset({fact.name})})
        for fact in facts
        if fact.finding is not None
    ]
    deviations = _declared(explained(None, PROGRAM, program.chapter, findings, ledger), program, ledger)
    judged = {program.id: len(facts)}
    return CaseResult(PROGRAM, program.id, program.chapter, "corpus", RAN, judged=judged, deviations=deviations)


def _declared(deviations: tuple[Deviation, ...], program: Program, ledger: Ledger) -> tuple[Deviation, ...]:
    """``deviations``, with one for each declared set of outcomes in the place of what this run saw of it: records of
    two runs are alike. What is not in the set stays."""
    for entry in ledger.varying(program.id):
        costliest = min(entry.instead, key=GAPS.index)
        observed = f"{', '.join(entry.instead)}, or as promised: {entry.varies}"
        whole = Deviation(program.id, WHOLE, costliest, program.statement, observed, entry.id)
        deviations = (*(d for d in deviations if d.ledger != entry.id), whole)
    return deviations


def _possible(program: Program, device: str) -> None:
    if release(program.since) > release(torch.__version__):
        raise NotOffered(f"what it is about came with torch {program.since}")
    if program.device not in ("any", device):
        raise NotRun(f"it is about {program.device}")
    if device != "cpu" and release(torch.__version__) < (2, 0):
        raise NotRun("programs have no default device to be moved by before torch 2.0")


def _alone(program: Program, device: str) -> list[Fact]:
    """The facts of a program that runs in a process of its own; that it crashes or hangs is a fact too.

    On the CPU that is a fork of a process which has imported what it needs, and run nothing.
    """
    forks = sys.platform == "linux" and device == "cpu"
    context: Any = multiprocessing.get_context("forkserver" if forks else "spawn")
    context.set_forkserver_preload([__name__, IMPORTED_LATE])
    answer, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(program.id, device, theirs))
    process.start()
    theirs.close()
    said: list[Fact] | NotOffered | NotRun | str | None = None
    try:
        if not answer.poll(ALONE_HANG_LIMIT):
            return [Fact(WHOLE, Finding(Site(PROCESS), EQUAL, f"{ENDS} within {ALONE_HANG_LIMIT} s", None))]
        with suppress(EOFError):
            said = answer.recv()
        if said is None:  # it has ended without a word, by itself
            process.join()
    finally:
        process.kill()
        process.join()
        answer.close()
    if isinstance(said, list):
        return said
    if isinstance(said, (NotOffered, NotRun)):
        raise said
    code: int = process.exitcode
    if said is not None or code >= 0:
        raise RuntimeError(f"program {program.id} {said or f'ended with exit code {code}'}")
    if code == -getattr(signal, "SIGXCPU", 0):
        within = f"{ENDS} within {ALONE_LIMIT} s of processor time"
        return [Fact(WHOLE, Finding(Site(PROCESS), EQUAL, within, None))]
    return [Fact(WHOLE, Finding(Site(PROCESS), EQUAL, ENDS, f"ended by signal {-code}"))]


def limit_processor_time(seconds: int) -> None:
    """Has the system end this process by a signal (``SIGXCPU``) once it has worked for so long, where it can."""
    with suppress(ImportError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        soft = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _tell(id: str, device: str, answer: Connection) -> None:
    """Runs one program for another process and tells it the facts, or what came out instead."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # what it prints is no answer of the run's
        os.dup2(quiet, stream)
    torch.set_num_threads(1)
    limit_processor_time(ALONE_LIMIT)
    said: list[Fact] | NotOffered | NotRun | str
    try:
        program = CLAUSES[id]
        assert isinstance(program, Program)
        said = facts_of(program, device)
    except (NotOffered, NotRun) as reason:
        said = reason
    except BaseException:
        said = f"let out:\n{traceback.format_exc()}"
    answer.send(said)
    os._exit(0)  # torch 1.8 can hang where a process ends soon after its first backward
