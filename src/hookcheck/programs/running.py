"""Running a program: it is run, in this process or in one of its own, and its facts are held to the ledger."""

from __future__ import annotations

import base64
import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress

import torch

import hookcheck.programs.chapters  # noqa: F401 -- declares the programs
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.explaining import Located, explained
from hookcheck.contract.finding import Finding
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.site import EQUAL, PROCESS, Site
from hookcheck.contract.verdict import GAPS, NOT_OFFERED, NOT_RUN, RAN, CaseResult, Deviation
from hookcheck.probe.run import release
from hookcheck.programs.check import Fact, NotOffered, NotRun
from hookcheck.programs.facts import facts_of
from hookcheck.programs.processes import groups_closed
from hookcheck.programs.program import ALONE_HANG_LIMIT, ALONE_LIMIT, ENDS, PROGRAM, WHOLE, Program


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
    """The facts of a program that runs in a process of its own; that it crashes or hangs is a fact too."""
    command = [sys.executable, "-m", __name__, program.id, device]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=ALONE_HANG_LIMIT, env=environment
        )
    except subprocess.TimeoutExpired:
        return [Fact(WHOLE, Finding(Site(PROCESS), EQUAL, f"{ENDS} within {ALONE_HANG_LIMIT} s", None))]
    if done.returncode == -getattr(signal, "SIGXCPU", 0) != 0:
        within = f"{ENDS} within {ALONE_LIMIT} s of processor time"
        return [Fact(WHOLE, Finding(Site(PROCESS), EQUAL, within, None))]
    answer = next((line for line in done.stdout.splitlines() if line.startswith(_ANSWER)), None)
    if answer is None and done.returncode >= 0:
        raise RuntimeError(f"program {program.id} ended with exit code {done.returncode}:\n{done.stderr}")
    if answer is None:
        return [Fact(WHOLE, Finding(Site(PROCESS), EQUAL, ENDS, f"ended by signal {-done.returncode}"))]
    said: list[Fact] | NotOffered | NotRun = pickle.loads(base64.b64decode(answer[len(_ANSWER) :]))
    if isinstance(said, list):
        return said
    raise said


_ANSWER = "facts: "


def limit_processor_time(seconds: int) -> None:
    """Has the system end this process by a signal (``SIGXCPU``) once it has worked for so long, where it can."""
    with suppress(ImportError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        soft = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _main(id: str, device: str) -> None:
    """Runs one program for another process and tells it the facts on standard output."""
    torch.set_num_threads(1)
    limit_processor_time(ALONE_LIMIT)
    program = CLAUSES[id]
    assert isinstance(program, Program)
    try:
        said: list[Fact] | NotOffered | NotRun = facts_of(program, device)
    except (NotOffered, NotRun) as reason:
        said = reason
    print(f"{_ANSWER}{base64.b64encode(pickle.dumps(said)).decode()}", flush=True)
    os._exit(0)  # torch 1.8 can hang where a process ends soon after its first backward


if __name__ == "__main__":
    _main(*sys.argv[1:])
