"""What does a run set out to do, and how does it become a record? The plan before, the record after.

The process that controls a run makes the plan, hands it to the workers, and at the end puts their part files together.
"""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck import __version__
from hookcheck.contract.clause import CLAUSES, Clause, clause_named, described
from hookcheck.contract.evidence import order
from hookcheck.contract.ledger import DEVICES, applying, load
from hookcheck.contract.verdict import CRASHED, NOT_RUN, TIMED_OUT, CaseResult
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS, kind_named
from hookcheck.probe.cuda import accelerator
from hookcheck.probe.processor import arithmetic
from hookcheck.programs.program import PROGRAM, Program, chapters
from hookcheck.record.lines import case_line
from hookcheck.record.model import (
    CORPUS,
    CorpusFile,
    Counterexample,
    Footer,
    Header,
    Plan,
    PlannedClause,
    Record,
    Torch,
    tally,
)
from hookcheck.record.parts import merge, read_parts
from hookcheck.run.examiner import Examiner
from hookcheck.run.session import Session
from hookcheck.topology.codec import decode, encode, identify
from hookcheck.topology.corpus import digest, read, shares
from hookcheck.topology.families import FAMILIES, family_named
from hookcheck.topology.model import Topology
from hookcheck.topology.source import source

SMOKE = ("multi-node", "pass-through", PROGRAM)
"""The families of a smoke test: few networks in which much can go wrong, and the programs."""

SLOW = (
    "ambient-state",
    "autocast",
    "checkpointed-gradients",
    "checkpointing",
    "clauses-on-hosts",
    "comm-hooks",
    "compiled-autograd-hooks",
    "copying",
    "distributed-hooks",
    "distributed-tensors",
    "graph-modules",
    "hooks-in-compiled-code",
    "hooks-of-torch",
    "hosts",
    "interactions",
    "module-utilities",
    "parallel",
    "pipelines",
    "sharded",
    "sharded-settings",
    "sharded-steps",
    "situations",
    "states-of-hosts",
    "tensor-parallel",
    "torch-compile",
    "torch-compile-backward",
    "torch-compile-graphs",
    "tracing",
)
"""The chapters of programs that compile, need processes or try many cases; a smoke test leaves them out."""

LABEL = "([A-Za-z0-9][A-Za-z0-9._-]*)?"
"""The form of a label, which goes into the name of a record."""

CUT_OFF = "cut-off"
"""The label of the record of a run that was cut off: it takes no other one's place."""

LEFT_OUT = "left out of this run by its selection of tests"


@dataclass(frozen=True)
class Request:
    """What the user asked for: names of families, hook kinds, clauses and devices, and where things are.

    ``reports`` is the folder for records and report, ``corpus`` that of the corpus files. ``profile`` is the Hypothesis
    profile, ``examples`` its number of new topologies a family, ``seed`` what they are drawn from. ``label`` is a part
    of the record's name that the user gives it, and ``run`` what this run's folder of part files is called by. Torch
    computes on ``threads`` threads; 0 is one, unless the environment says how many.
    """

    families: tuple[str, ...]
    kinds: tuple[str, ...]
    clauses: tuple[str, ...]
    devices: tuple[str, ...]
    reports: str
    corpus: str
    profile: str
    examples: int
    seed: int
    started: str
    run: str
    label: str = ""
    threads: int = 0

    @property
    def parts(self) -> Path:
        """The folder of part files of this run."""
        return Path(self.reports) / f".partial-{self.run}"

    @property
    def whole(self) -> bool:
        """Whether every family, hook kind and clause is asked for: only then does the record stand for its torch."""
        return (self.families, self.kinds, self.clauses) == (all_families(), all_kinds(), tuple(CLAUSES))

    @property
    def shared(self) -> bool:
        """Whether siblings share the corpus: not where hook kinds are named, nor in the profile ``thorough``."""
        return self.hook_kinds == tuple(KINDS) and self.profile != "thorough"

    @property
    def topology_families(self) -> tuple[str, ...]:
        """The families that are asked for, programs aside."""
        return tuple(family for family in self.families if family != PROGRAM)

    @property
    def hook_kinds(self) -> tuple[str, ...]:
        """The hook kinds that are asked for, chapters of programs aside."""
        return tuple(kind for kind in self.kinds if kind in KINDS)


def all_families() -> tuple[str, ...]:
    """Every family, and that of the programs."""
    return (*FAMILIES, PROGRAM)


def all_kinds() -> tuple[str, ...]:
    """Every hook kind, and every chapter of programs, which stands for one."""
    return (*KINDS, *chapters())


def request(families: Iterable[str], kinds: Iterable[str], clauses: Iterable[str], device: str, **rest: Any) -> Request:
    """A checked request, each name in it once; empty ``kinds`` or ``clauses`` mean all, ``device`` is cpu, cuda or all.

    Empty ``families`` mean those that the clauses speak of: networks, programs, or both.

    Raises:
        HookcheckError: an unknown family, hook kind, clause or device, or a label that no file can have.
    """
    if device not in (*DEVICES, "all"):
        raise HookcheckError(f"unknown device {device!r}; choose from {', '.join(DEVICES)}, all")
    if rest.get("threads", 0) < 0:
        raise HookcheckError(f"torch cannot compute on {rest['threads']} threads; --threads takes 1 or more")
    if not re.fullmatch(LABEL, rest.get("label", "")):
        raise HookcheckError(f"the label {rest['label']!r} is no part of a file's name; use letters, digits, . _ and -")
    chosen_clauses = tuple(dict.fromkeys(clause_named(id).id for id in clauses)) or tuple(CLAUSES)
    of_programs = {isinstance(CLAUSES[id], Program) for id in chosen_clauses}
    spoken_of = tuple(name for name in all_families() if (name == PROGRAM) in of_programs)
    chosen_families = dict.fromkeys(name if name == PROGRAM else family_named(name).name for name in families)
    chosen_kinds = dict.fromkeys(name if name in chapters() else kind_named(name).name for name in kinds)
    return Request(
        families=tuple(chosen_families) or spoken_of,
        kinds=tuple(chosen_kinds) or all_kinds(),
        clauses=chosen_clauses,
        devices=DEVICES if device == "all" else (device,),
        **rest,
    )


def in_chapters(names: Iterable[str]) -> Iterator[str]:
    """The ids of the clauses in the chapters of these names.

    Raises:
        HookcheckError: there is no chapter of a name.
    """
    chapters_of = {id: clause.chapter for id, clause in CLAUSES.items()}
    known = tuple(dict.fromkeys(chapters_of.values()))
    for name in names:
        if name not in known:
            near = get_close_matches(name, known) or known
            raise HookcheckError(f"unknown chapter {name!r}; choose from {', '.join(near)}")
        yield from (id for id, chapter in chapters_of.items() if chapter == name)


def smoke() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The families and the clauses of a smoke test."""
    slow = {id for id, c in CLAUSES.items() if isinstance(c, Program) and (c.alone or c.chapter in SLOW)}
    return SMOKE, tuple(id for id in CLAUSES if id not in slow)


def chosen(request: Request) -> tuple[Clause, ...]:
    """The clauses that are asked for."""
    return tuple(CLAUSES[id] for id in request.clauses)


_corpus = lru_cache(maxsize=None)(read)
"""The corpus of a family, read once in a process."""


def corpora(request: Request) -> dict[str, tuple[Topology, ...]]:
    """The corpus of every family that is asked for.

    Raises:
        CorpusError: a corpus file is missing or at fault.
    """
    return {family: _corpus(Path(request.corpus), family) for family in request.topology_families}


def planned_networks(request: Request) -> Iterator[tuple[str, str, str]]:
    """Family, topology and hook kind of each case of the corpus that is asked for."""
    shared = _shares(request)
    for family, topologies in corpora(request).items():
        for id in map(identify, topologies):
            kinds = request.hook_kinds if shared is None else shared[family][id]
            yield from ((family, id, kind) for kind in kinds)


def _shares(request: Request) -> Mapping[str, Mapping[str, tuple[str, ...]]] | None:
    """By family and id the hook kinds that a topology is run with; None where each is run with all."""
    if not request.shared:
        return None
    return {family: shares(Path(request.corpus), family) for family in request.topology_families}


def planned_programs(request: Request) -> tuple[Program, ...]:
    """The programs that are asked for."""
    if PROGRAM not in request.families:
        return ()
    return tuple(c for c in chosen(request) if isinstance(c, Program) and c.chapter in request.kinds)


class _Corpora(dict[str, tuple[Topology, ...]]):
    """Corpora that are read when they are asked for: a worker replays some of them, the controller has checked all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __missing__(self, family: str) -> tuple[Topology, ...]:
        self[family] = _corpus(self.folder, family)
        return self[family]


def session(request: Request, worker: str, torch_version: str, here: bool = False) -> Session:
    """The share of the process called ``worker``; torch runs in a process of its own, or, for a debugger, ``here``."""
    entries = load()
    clauses = chosen(request)
    ledgers = {device: applying(entries, torch_version, device) for device in request.devices}
    return Session(
        kinds=request.hook_kinds,
        clauses=clauses,
        ledgers=ledgers,
        corpus=_Corpora(Path(request.corpus)),
        seed=request.seed,
        parts=request.parts,
        worker=worker,
        runner=Examiner(clauses, ledgers) if here else None,
        threads=request.threads,
        shares=_shares(request),
    )


def record(request: Request, device: str, torch: Torch, stopped: str) -> Record:
    """The record of the run on one device, from the part files; what is missing there was not run.

    ``stopped`` says why the run ended early and is empty for one that is complete.
    """
    corpus = corpora(request)
    plan = _plan(request, corpus)
    reason = stopped or LEFT_OUT
    placeholders = [case_line(CaseResult(*case, "corpus", NOT_RUN, reason)) for case in planned_networks(request)]
    placeholders += [
        case_line(CaseResult(PROGRAM, program.id, program.chapter, "corpus", NOT_RUN, reason))
        for program in planned_programs(request)
    ]
    lines = read_parts(request.parts / device)
    cases = merge([*placeholders, *(line for line in lines if line["type"] == "case")], plan)
    explored = _explored(line for line in lines if line["type"] == "explored")
    known = {identify(topology): topology for topologies in corpus.values() for topology in topologies}
    label = "-".join(filter(None, [request.label, CUT_OFF if stopped else ""]))
    known.update((line["topology"], decode(line["content"])) for line in lines if line["type"] == "topology")
    return Record(
        header=Header(__version__, request.started, _environment(), torch, device, plan, label),
        cases=cases,
        counterexamples=_counterexamples(cases, known),
        footer=Footer(now(), not stopped, stopped, tally(cases), explored),
    )


def _explored(lines: Iterable[Mapping[str, Any]]) -> int:
    """How many new topologies there were; a run that goes on with another draws anew what that had not finished."""
    most: dict[tuple[str, int], int] = {}
    for line in lines:
        key = line["family"], line["round"]
        most[key] = max(line["topologies"], most.get(key, 0))
    return sum(most.values())


def stands(request: Request, record: Record) -> bool:
    """Whether ``record`` stands for its torch: all was asked for, nothing was cut short and nothing left out."""
    return request.whole and record.footer.complete and not any(case.reason == LEFT_OUT for case in record.cases)


def discard_parts(request: Request) -> None:
    """Removes the part files, once their content is in a record."""
    shutil.rmtree(request.parts, ignore_errors=True)


def to_workers(request: Request) -> dict[str, Any]:
    """The request as plain values, for another process to read with `from_controller`."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(request).items()}


def from_controller(values: Mapping[str, Any]) -> Request:
    """The request that `to_workers` wrote."""
    fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    return Request(**fields)


def now() -> str:
    """The time in UTC, to the second, as ISO 8601."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _plan(request: Request, corpus: Mapping[str, tuple[Topology, ...]]) -> Plan:
    clauses = [described(clause) for clause in chosen(request)]
    return Plan(
        profile=request.profile,
        seed=request.seed,
        families=request.families,
        kinds=request.kinds,
        clauses=tuple(
            PlannedClause(c["id"], c["class"], c["statement"], c["since"], c["source"], tuple(c["kinds"]))
            for c in clauses
        ),
        corpus={family: CorpusFile(len(topologies), digest(topologies)) for family, topologies in corpus.items()},
        cases=sum(1 for _ in planned_networks(request)) + len(planned_programs(request)),
    )


def _environment() -> dict[str, str]:
    packages = {name: version(name) for name in ("numpy", "hypothesis", "pytest")}
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        **packages,
        **arithmetic(),
        **accelerator(),
    }


def _counterexamples(cases: Iterable[CaseResult], known: Mapping[str, Topology]) -> tuple[Counterexample, ...]:
    """Deviating programs; of every cell the smallest deviating topology, and the smallest that is not explained; and
    new topologies with which the process was lost."""
    smallest: dict[tuple[str, str, str, bool], str] = {}
    deviating, lost = [], []
    for case in cases:
        if case.family == PROGRAM and case.deviations:
            deviating.append(case.topology)
            continue
        if case.outcome in (CRASHED, TIMED_OUT) and case.origin != CORPUS:
            lost.append(case.topology)
        for deviation in case.deviations:
            cell = (deviation.clause, case.family, case.kind)
            for key in {(*cell, True), (*cell, deviation.ledger is not None)}:
                best = smallest.get(key)
                if best is None or order(known[case.topology]) < order(known[best]):
                    smallest[key] = case.topology
    ids = sorted({*smallest.values(), *lost})
    networks = (Counterexample(id, encode(known[id]), source(known[id]).script()) for id in ids)
    sources = ((id, CLAUSES[id]) for id in sorted(deviating))
    return (*networks, *(Counterexample(id, {}, c.source_code) for id, c in sources if isinstance(c, Program)))
