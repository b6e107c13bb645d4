"""How does one process go through its share of the plan? Family by family, leaving every result in its part file.

A family on a device is examined in one go, all hook kinds on each topology, and kept, so that every cell of it is
judged on the same runs of torch. The part file says when a topology is begun, and when each of its cases has run: a
worker that takes over from one that died finds there what was finished and what was in flight, and goes on behind it.
"""

from __future__ import annotations

import faulthandler
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from hookcheck.collector import eased, settle
from hookcheck.contract.clause import Clause
from hookcheck.contract.evidence import Evidence
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import CRASHED, GAPS, TIMED_OUT, CaseResult, Cell, Deviation, cells
from hookcheck.networks.examine import examine
from hookcheck.programs.program import PROGRAM, programs
from hookcheck.programs.running import examine_program
from hookcheck.record.lines import case_line, case_lines, cases_of
from hookcheck.record.parts import Part, read_parts
from hookcheck.report.counterexample import told
from hookcheck.topology.codec import encode, identify
from hookcheck.topology.families import family_named
from hookcheck.topology.model import Topology

TIME_LIMIT = 60
"""Seconds that one topology may take with all its hook kinds; the slowest of the corpus takes about one."""

EVERY = 6
"""A new topology is run with one hook kind in so many."""


class Unexplained(AssertionError):
    """A topology that exploration drew deviates in a way that the ledger does not explain."""


@dataclass(repr=False)  # pytest prints it with every item that is skipped, and its corpus is long
class Session:
    """The share of one process in a run: what is asked for, and what has been found so far.

    ``selected`` has, by family and device, the hook kinds whose cells were picked out (of programs the clauses); where
    it says nothing, all are run.
    """

    kinds: tuple[str, ...]
    clauses: tuple[Clause, ...]
    ledgers: dict[str, Ledger]
    corpus: dict[str, tuple[Topology, ...]]
    seed: int
    parts: Path
    worker: str
    selected: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    _found: dict[tuple[str, str], tuple[CaseResult, ...]] = field(default_factory=dict)
    _cells: dict[tuple[str, str, str], tuple[tuple[CaseResult, ...], dict[str, Cell]]] = field(default_factory=dict)
    _left: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _open: dict[str, Part] = field(default_factory=dict)
    _watched: float = -math.inf

    def cell(self, clause: str, family: str, kind: str, device: str) -> tuple[Cell, tuple[CaseResult, ...]]:
        """The verdict on ``clause``, and the results that it rests on; torch runs when they are first asked for."""
        key = (family, kind, device)
        if key not in self._cells:
            whole = self.performed(kind, device) if family == PROGRAM else self.replayed(family, device)
            results = tuple(result for result in whole if result.kind == kind)
            judged = cells(results, [clause.id for clause in self.clauses])
            self._cells[key] = results, {cell.clause: cell for cell in judged}
        results, found = self._cells[key]
        if family == PROGRAM:
            results = tuple(result for result in results if result.topology == clause)
        return found[clause], results

    def replayed(self, family: str, device: str) -> tuple[CaseResult, ...]:
        """The results of the family's corpus on ``device``; torch runs when they are first asked for."""
        return self._once(family, device, self._replay)

    def performed(self, chapter: str, device: str) -> tuple[CaseResult, ...]:
        """The results of a chapter's programs on ``device``; they are run when they are first asked for."""
        return self._once(chapter, device, self._perform)

    def _once(self, share: str, device: str, run: Callable[[str, str], Iterator[CaseResult]]) -> tuple[CaseResult, ...]:
        if (share, device) not in self._found:
            with eased():
                self._found[share, device] = tuple(run(share, device))
            self._calm()
            settle()  # these results stay, and seeing what hooks keep alive takes many a collection
        return self._found[share, device]

    def _perform(self, chapter: str, device: str) -> Iterator[CaseResult]:
        finished, begun = self._taken_over(PROGRAM, device)
        for program in programs(chapter):
            if program not in self.clauses or not self._selects(PROGRAM, device, program.id):
                continue
            case = (program.id, chapter)
            if case in finished:
                yield finished[case]
            elif program.id in begun:
                yield self._kept(_lost(PROGRAM, program.id, chapter, begun[program.id][0]), device)
            else:
                self._begin(PROGRAM, program.id, device)
                yield self._kept(examine_program(program, self.ledgers[device], device), device)

    def _replay(self, family: str, device: str) -> Iterator[CaseResult]:
        finished, begun = self._taken_over(family, device)
        evidence = Evidence()
        kinds = tuple(kind for kind in self.kinds if self._selects(family, device, kind))
        for topology in self.corpus[family]:
            id = identify(topology)
            missing = [kind for kind in kinds if (id, kind) not in finished]
            yield from (finished[id, kind] for kind in kinds if (id, kind) in finished)
            if id in begun and missing:
                at, ran = begun[id]
                yield self._kept(_lost(family, id, missing.pop(min(ran, len(missing) - 1)), at), device)
            if missing:
                self._begin(family, id, device)
                part = self._part(device)
                results = [*self._examined(topology, family, missing, device, "corpus", evidence, part.count)]
                part.append(*case_lines(results))
                yield from results

    def _selects(self, family: str, device: str, name: str) -> bool:
        """Whether a hook kind of a family, or a program, is to be run."""
        return name in self.selected.get((family, device), (name,))

    def explore(self, family: str, device: str, examples: int, round: int = 0) -> int:
        """Draws ``examples`` new topologies of the family, examines them, and gives how many there were.

        Each is run with a share of the hook kinds (`EVERY`), and its id says which: more topologies tell more than the
        other kinds would. Each ``round`` draws others. Of what is found, only what the ledger does not explain goes
        into the part file: new topologies are others wherever Hypothesis is, so there is nothing to compare them with.

        Raises:
            Unexplained: for the smallest topology found that deviates as the first one found did.
        """
        seen = {identify(topology) for topology in self.corpus[family]}
        known = len(seen)
        sought: list[tuple[str, str, str]] = []

        @seed(self.seed + round * 2**32)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow],
            report_multiple_bugs=False,
            print_blob=False,
        )
        @given(family_named(family).topologies())
        def run(topology: Topology) -> None:
            self._watch()  # drawing takes its time too
            kinds = [kind for kind, *_ in sought]
            if not sought:
                id = identify(topology)
                if id in seen:
                    return
                seen.add(id)
                kinds = [*_some(self.kinds, id)]
            results = self._examined(topology, family, kinds, device, "exploration", evidence)
            found = [(kind, d) for kind, d in _unexplained(results) if not sought or _key(kind, d) in sought]
            if found:
                kind, deviation = min(found, key=lambda item: GAPS.index(item[1].gap))
                sought[:] = [_key(kind, deviation)]
                best.append((topology, kind, deviation))
                raise Unexplained

        evidence = Evidence()
        best: list[tuple[Topology, str, Deviation]] = []
        try:
            with eased():
                run()
        except Unexplained:
            topology, kind, deviation = best[-1]  # Hypothesis ends by running the smallest once more
            for result in self._examined(topology, family, self.kinds, device, "exploration", evidence):
                if _unexplained([result]):  # of what is known not all is put into words
                    self._kept(result, device, topology)
            raise Unexplained(told(topology, family, kind, deviation)) from None
        finally:
            self._part(device).append({"type": "explored", "family": family, "topologies": len(seen) - known})
            self._calm()
        return len(seen) - known

    def _examined(
        self,
        topology: Topology,
        family: str,
        kinds: Iterable[str],
        device: str,
        origin: str,
        evidence: Evidence,
        ran: Callable[[], None] = lambda: None,
    ) -> Iterator[CaseResult]:
        self._watch()
        return examine(topology, family, kinds, self.clauses, self.ledgers[device], device, origin, evidence, ran)

    def _begin(self, family: str, id: str, device: str) -> None:
        """Notes what is about to be run, for a worker that takes over."""
        self._watch()
        self._part(device).append({"type": "begin", "family": family, "topology": id, "at": time.time()})

    def _watch(self) -> None:
        """Has the process end itself if it is still at the same topology after `TIME_LIMIT`."""
        if time.monotonic() - self._watched > 1:  # setting the alarm takes as long as running a topology
            faulthandler.dump_traceback_later(TIME_LIMIT + 1, exit=True)
            self._watched = time.monotonic()

    def _calm(self) -> None:
        """Calls off the alarm: what the process does after its share of torch may take as long as it likes."""
        faulthandler.cancel_dump_traceback_later()
        self._watched = -math.inf

    def _kept(self, result: CaseResult, device: str, topology: Topology | None = None) -> CaseResult:
        part = self._part(device)
        part.append(case_line(result))
        if topology is not None:
            part.append({"type": "topology", "topology": result.topology, "content": encode(topology)})
        return result

    def _part(self, device: str) -> Part:
        if device not in self._open:
            self._open[device] = Part(self.parts / device / f"{self.worker}.jsonl")
        return self._open[device]

    def close(self) -> None:
        """Closes the part files, for the end of the process's share."""
        for part in self._open.values():
            part.close()

    def _taken_over(
        self, family: str, device: str
    ) -> tuple[dict[tuple[str, str], CaseResult], dict[str, tuple[float, int]]]:
        """What workers before this one left: finished cases, and of each topology that was begun when that was and how
        many of its cases had run if it was in flight."""
        if device not in self._left:  # read once: a worker has this one take its place only when it has ended
            self._left[device] = read_parts(self.parts / device)
        lines = self._left[device]
        own = [line for line in lines if line.get("family") == family]
        cases = [case for line in own if line["type"] == "case" for case in cases_of(line)]
        finished = {(case.topology, case.kind): case for case in cases if case.origin == "corpus"}
        begun = [(line["topology"], line["at"], line.get("ran", 0)) for line in own if line["type"] == "begin"]
        return finished, {id: (at, ran) for id, at, ran in sorted(begun, key=lambda each: each[1])}


def _lost(family: str, topology: str, kind: str, begun: float) -> CaseResult:
    """The case that a worker took with it when it ended: it ran out of time, or it crashed the interpreter."""
    if time.time() - begun >= TIME_LIMIT:
        return CaseResult(family, topology, kind, "corpus", TIMED_OUT, f"still running after {TIME_LIMIT} s")
    return CaseResult(family, topology, kind, "corpus", CRASHED, "the interpreter ended while it ran")


def _unexplained(results: Iterable[CaseResult]) -> list[tuple[str, Deviation]]:
    return [(r.kind, d) for r in results for d in r.deviations if d.ledger is None]


def _some(kinds: tuple[str, ...], id: str) -> tuple[str, ...]:
    """One in `EVERY` of ``kinds``, beginning as the id has it; all where they are fewer than that."""
    return kinds[int(id, 16) % EVERY :: EVERY] if len(kinds) >= EVERY else kinds


def _key(kind: str, deviation: Deviation) -> tuple[str, str, str]:
    return kind, deviation.clause, deviation.gap
