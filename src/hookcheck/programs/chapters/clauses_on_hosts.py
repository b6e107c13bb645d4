"""Does what holds for hooks of plain modules and optimizers hold on every host?

The programs of the other chapters run unchanged, but what they make their modules or optimizers by gives something else
(see `hookcheck.programs.hosting`): a module that is or was parametrized or normed, that is or was lazy, that is a copy,
an average, wrapped, fused, prepared to be quantised, quantised or converted, has its own methods, lives for one call,
takes no hooks and says so, or that is compiled; an optimizer that is fused, a subclass, a copy, under schedulers, or
for several processes. Each fact of theirs must be what it is on the plain one. What a host is meant to change is left
out, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain

from hookcheck.contract.clause import PIN
from hookcheck.contract.finding import Finding
from hookcheck.probe.compiling import unlogged
from hookcheck.programs.check import Check, NotOffered, NotRun
from hookcheck.programs.compiling import dynamo, fresh
from hookcheck.programs.host_changes import offered
from hookcheck.programs.host_compiled import COMPILED
from hookcheck.programs.host_kinds import KINDS, ON_NO_HOST, Kind
from hookcheck.programs.host_optimizers import DISTRIBUTED, OPTIMIZERS
from hookcheck.programs.hosting import hosted, untrue
from hookcheck.programs.making import makes
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import Program, program, programs

CHAPTERS = (
    "handles", "hook-order", "call-path", "forward-pre-hooks", "forward-hooks", "always-call", "full-backward-hooks",
    "full-backward-pre-hooks", "legacy-backward-hooks", "backward-hook-firing", "backward-hook-results",
    "backward-hook-structures", "acting-backward-hooks", "global-hooks", "global-backward-hooks", "registration-hooks",
    "parameter-hooks", "state-dict-hooks", "states-and-hooks", "copying", "serialization",
)  # fmt: skip
"""The chapters on registering, removing, ordering, calls, state dicts and copies."""

CHAPTERS_OF_OPTIMIZERS = (
    "optimizer-hooks", "optimizer-errors", "optimizers-in-backward", "optimizer-state-dict-hooks", "copying",
    "serialization",
)  # fmt: skip
"""Those on hooks of optimizers; the last two are about modules as well."""

ON_HOSTS = (
    (KINDS, CHAPTERS), (COMPILED, CHAPTERS), (OPTIMIZERS, CHAPTERS_OF_OPTIMIZERS), (DISTRIBUTED, CHAPTERS_OF_OPTIMIZERS)
)  # fmt: skip
"""The hosts, each with the chapters that run on it."""


def is_meant(kind: Kind, *words: str) -> str | None:
    """Why a host of that kind is meant to make untrue what has one of ``words``: an id, a chapter, a fact; or None."""
    earlier = [reasons.items() for release, reasons in kind.before.items() if not offered(release)]
    return next((why for _, why in left_out(dict(chain(ON_NO_HOST.items(), kind.but.items(), *earlier)), *words)), None)


def left_out(reasons: Mapping[str, str], *words: str) -> Iterator[tuple[str, str]]:
    """The patterns that match one of ``words``, each with its reason."""
    return ((p, why) for p, why in reasons.items() if any(fnmatchcase(word, p) for word in words))


def fitting(kind: Kind, chapters: tuple[str, ...]) -> Iterator[Program]:
    """The programs of those chapters that hold on such hosts."""
    for chapter in chapters:
        for one in programs(chapter):
            major, minor = map(int, one.since.split("."))
            if offered((major, minor)) and replaced(kind, one) and not is_meant(kind, one.id, chapter):
                yield one


def replaced(kind: Kind, one: Program) -> frozenset[str]:
    """The names by which a program makes what is another thing on a host of that kind."""
    return makes(one) & {*kind.names}


@dataclass(frozen=True)
class OnHost:
    """What of a program does not hold on a host and does elsewhere, by the names of its facts."""

    host: str
    program: str
    findings: Mapping[str, Finding]


def seen(check: Check, kinds: Mapping[str, Kind], chapters: tuple[str, ...]) -> Iterator[OnHost]:
    """Runs the programs on each host."""
    plain: dict[str, Mapping[str, Finding]] = {}
    for name, kind in kinds.items():
        for one in fitting(kind, chapters) if offered(kind.since) else ():
            with suppress(NotOffered, NotRun):
                if one.id not in plain:
                    plain[one.id] = untrue(one, check.device)
                yield OnHost(name, one.id, on_host(kind, one, check.device, plain[one.id]))


def on_host(kind: Kind, one: Program, device: str, plain: Mapping[str, Finding]) -> dict[str, Finding]:
    """What of a program does not hold on such a host and is not untrue elsewhere, by the names of its facts."""
    with hosted(one, dict.fromkeys(kind.names, kind.make)):
        deviating = untrue(one, device, kind.refuses)
    new = {fact: finding for fact, finding in deviating.items() if fact not in plain}
    return {fact: finding for fact, finding in new.items() if not is_meant(kind, f"{one.id}: {fact}")}


def states_each(check: Check, one: OnHost) -> None:
    """States of a program on a host that all facts hold, or what each of the others is: some of its hooks may be lost
    there, and others must not be."""
    if not one.findings:
        check.state(f"{one.host}: {one.program}", None)
    for fact, finding in one.findings.items():
        features = {"host": frozenset({one.host}), "program": frozenset({one.program})}
        check.state(f"{one.host}: {one.program}: {fact}", finding, features)


@program("HO-03", PIN, since="1.8", source="each clause's own", device="cpu")  # some hosts are quantised
def clauses_hold_on_hosts_of_modules(check: Check) -> None:
    """What holds of hooks on plain modules holds on modules that were changed, changed back, copied or traced."""
    for one in seen(check, KINDS, CHAPTERS):
        states_each(check, one)


@program("HO-04", PIN, since="2.0", source="each clause's own")
def clauses_hold_on_hosts_of_optimizers(check: Check) -> None:
    """What holds of hooks on a plain optimizer holds on subclasses, on fused and foreach ones, and on copies."""
    for one in seen(check, OPTIMIZERS, CHAPTERS_OF_OPTIMIZERS):
        states_each(check, one)


@program("HO-07", PIN, since="2.1", source="each clause's own; pytorch#152740")
@fresh()
def clauses_hold_on_compiled_modules(check: Check) -> None:
    """What holds of hooks on plain modules holds on what torch.compile makes of them, and on what Module.compile
    compiles in place."""
    with unlogged():
        for one in seen(check, COMPILED, CHAPTERS):
            dynamo().reset()  # up to 2.4 the cache of a function holds on to modules that are gone, and reads them
            states_each(check, one)


@program("HO-09", PIN, since="2.0", source="each clause's own; torch.optim.Optimizer.register_step_pre_hook")
def clauses_hold_on_optimizers_of_processes(check: Check) -> None:
    """What holds of hooks on a plain optimizer holds on those for several processes, in a process group of one."""
    with process_group(check):
        for one in seen(check, DISTRIBUTED, CHAPTERS_OF_OPTIMIZERS):
            states_each(check, one)
