"""How does one process go through its share of the plan? Family by family, leaving every result in its part file.

A family on a device is examined in one go, each topology with all its hook kinds, and kept, so that every cell of it is
judged on the same runs of torch, which take place in a process of their own. A session that takes over from one that
was cut off finds in the part files what was finished, and runs the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from hookcheck.collector import eased, settle
from hookcheck.contract.clause import Clause
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import CRASHED, GAPS, TIMED_OUT, CaseResult, Cell, Deviation, cells
from hookcheck.programs.program import PROGRAM, programs
from hookcheck.record.lines import case_line, case_lines, cases_of
from hookcheck.record.parts import Part, read_parts
from hookcheck.report.counterexample import lost_text, network_text
from hookcheck.run.child import Child
from hookcheck.run.examiner import Examiner, Runner, Task, outcomes
from hookcheck.topology.codec import encode, identify
from hookcheck.topology.families import family_named
from hookcheck.topology.model import Topology, size

EVERY = 6
"""A new topology is run with one hook kind in so many."""


class Unexplained(AssertionError):
    """A topology that exploration drew deviates in a way that the ledger does not explain, or ended the process."""


@dataclass(repr=False)  # pytest prints it with every item that is skipped, and its corpus is long
class Session:
    """The share of one process in a run: what is asked for, and what has been found so far.

    ``runner`` is what runs torch; where it is None, that is a process of its own. ``selected`` has, by family and
    device, the hook kinds whose cells were picked out (of programs the clauses); where it says nothing, all are run.
    ``shares`` has, by family and id, the hook kinds that a topology of the corpus is run with; where it is None, all.
    ``threads`` are those that torch computes on in a process of its own; 0 leaves it to the environment.
    """

    kinds: tuple[str, ...]
    clauses: tuple[Clause, ...]
    ledgers: dict[str, Ledger]
    corpus: dict[str, tuple[Topology, ...]]
    seed: int
    parts: Path
    worker: str
    runner: Runner | None = None
    threads: int = 0
    selected: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    shares: Mapping[str, Mapping[str, tuple[str, ...]]] | None = None
    _results: dict[tuple[str, str], tuple[CaseResult, ...]] = field(default_factory=dict)
    _cells: dict[tuple[str, str, str], tuple[tuple[CaseResult, ...], dict[str, Cell]]] = field(default_factory=dict)
    _left: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _open: dict[str, Part] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A process of its own starts when it is first needed."""
        self._runner = self.runner or Child(
            Examiner(self.clauses, self.ledgers, self.threads), self.parts / f"tmp-{self.worker}"
        )

    def cell(self, clause: str, family: str, kind: str, device: str) -> tuple[Cell, tuple[CaseResult, ...]]:
        """The verdict on ``clause``, and the results that it rests on; torch runs when they are first asked for."""
        key = (family, kind, device)
        if key not in self._cells:
            whole = self.performed(kind, device) if family == PROGRAM else self.replayed(family, device)
            results = tuple(result for result in whole if result.kind == kind)
            judged = cells(results, [clause.id for clause in self.clauses if kind in clause.kinds])
            self._cells[key] = results, {cell.clause: cell for cell in judged}
        results, by_clause = self._cells[key]
        if family == PROGRAM:
            results = tuple(result for result in results if result.topology == clause)
        return by_clause[clause], results

    def replayed(self, family: str, device: str) -> tuple[CaseResult, ...]:
        """The results of the family's corpus on ``device``; torch runs when they are first asked for."""
        return self._once(family, device, self._replay)

    def performed(self, chapter: str, device: str) -> tuple[CaseResult, ...]:
        """The results of a chapter's programs on ``device``; they are run when they are first asked for."""
        return self._once(chapter, device, self._perform)

    def _once(self, share: str, device: str, run: Callable[[str, str], Iterator[CaseResult]]) -> tuple[CaseResult, ...]:
        if (share, device) not in self._results:
            with eased():
                self._results[share, device] = tuple(run(share, device))
            settle()  # these results stay, and seeing what hooks keep alive takes many a collection
        return self._results[share, device]

    def _perform(self, chapter: str, device: str) -> Iterator[CaseResult]:
        finished = self._finished(PROGRAM, device)
        for program in programs(chapter):
            if program not in self.clauses or not self._selects(PROGRAM, device, program.id):
                continue
            case = (program.id, chapter)
            if case in finished:
                yield finished[case]
            else:
                task = Task(PROGRAM, program.id, (chapter,), device, "corpus", chapter)
                yield from (self._write(result, device) for result in outcomes(self._runner, task))

    def _replay(self, family: str, device: str) -> Iterator[CaseResult]:
        finished = self._finished(family, device)
        for topology in self.corpus[family]:
            id = identify(topology)
            of_it = self.kinds if self.shares is None else self.shares[family][id]
            kinds = tuple(kind for kind in of_it if self._selects(family, device, kind))
            yield from (finished[id, kind] for kind in kinds if (id, kind) in finished)
            missing = tuple(kind for kind in kinds if (id, kind) not in finished)
            if missing:
                task = Task(family, topology, missing, device, "corpus", f"{family}:{device}")
                results = [*outcomes(self._runner, task)]
                self._part(device).append(*case_lines(results))
                yield from results

    def _selects(self, family: str, device: str, name: str) -> bool:
        """Whether a hook kind of a family, or a program, is to be run."""
        return name in self.selected.get((family, device), (name,))

    def explore(self, family: str, device: str, examples: int, round: int = 0) -> int:
        """Draws ``examples`` new topologies of the family, fewer of a rare one, examines them, and gives how many there
        were.

        Each is run with a share of the hook kinds (`EVERY`), and its id says which: more topologies tell more than the
        other kinds would. Each ``round`` draws others. Of what is found, only what the ledger does not explain goes
        into the part file: new topologies are others wherever Hypothesis is, so there is nothing to compare them with.

        Raises:
            Unexplained: for the smallest topology found that deviates as the first one found did; or, where none
                deviates, for the smallest that was lost with the process.
        """
        done = self._explored(family, device, round)
        if done is not None:
            return done
        seen = {identify(topology) for topology in self.corpus[family]}
        known = len(seen)
        sought: list[tuple[str, str, str]] = []
        best: list[tuple[Topology, str, Deviation]] = []
        lost: list[tuple[Topology, CaseResult]] = []

        def examined(topology: Topology, kinds: Iterable[str]) -> list[CaseResult]:
            task = Task(family, topology, tuple(kinds), device, "exploration", f"{family}:{device}:{round}")
            results = [*outcomes(self._runner, task)]
            for result in results:
                if result.outcome in (CRASHED, TIMED_OUT):
                    self._write(result, device, topology)
                    lost.append((topology, result))
            return results

        @seed(self.seed + round * 2**32)
        @settings(
            max_examples=-(-examples // family_named(family).rarity),
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow],
            report_multiple_bugs=False,
            print_blob=False,
        )
        @given(family_named(family).topologies())
        def run(topology: Topology) -> None:
            kinds = [kind for kind, *_ in sought]
            if not sought:
                id = identify(topology)
                if id in seen:
                    return
                seen.add(id)
                kinds = [*_some(self.kinds, id)]
            results = examined(topology, kinds)
            unexplained = [(kind, d) for kind, d in _unexplained(results) if not sought or _key(kind, d) in sought]
            if unexplained:
                kind, deviation = min(unexplained, key=lambda item: GAPS.index(item[1].gap))
                sought[:] = [_key(kind, deviation)]
                best.append((topology, kind, deviation))
                raise Unexplained

        finished = False
        try:
            with eased():
                run()
            finished = not lost
        except Unexplained:
            topology, kind, deviation = best[-1]  # Hypothesis ends by running the smallest once more
            for result in examined(topology, self.kinds):
                if _unexplained([result]):  # of what is known not all is put into words
                    self._write(result, device, topology)
            raise Unexplained(network_text(topology, family, kind, deviation)) from None
        finally:
            line = {"type": "explored", "family": family, "round": round, "topologies": len(seen) - known}
            self._part(device).append({**line, "finished": finished})
        if lost:
            topology, result = min(lost, key=lambda each: size(each[0]))
            raise Unexplained(lost_text(topology, result))
        return len(seen) - known

    def peak_memory(self) -> float:
        """The most memory that torch's process has held, in MiB."""
        return self._runner.peak_memory()

    def _write(self, result: CaseResult, device: str, topology: Topology | None = None) -> CaseResult:
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
        """Ends torch's process and closes the part files, for the end of the session's share."""
        self._runner.close()
        for part in self._open.values():
            part.close()

    def _finished(self, family: str, device: str) -> dict[tuple[str, str], CaseResult]:
        """The cases of the corpus that sessions before this one have finished, by topology and hook kind."""
        lines = (line for line in self._lines(family, device) if line["type"] == "case")
        cases = (case for line in lines for case in cases_of(line) if case.origin == "corpus")
        return {(case.topology, case.kind): case for case in cases}

    def _explored(self, family: str, device: str, round: int) -> int | None:
        """How many new topologies a session before this one has examined, if it got to the end and found nothing."""
        lines = (line for line in self._lines(family, device) if line["type"] == "explored")
        return next((line["topologies"] for line in lines if line["round"] == round and line["finished"]), None)

    def _lines(self, family: str, device: str) -> list[dict[str, Any]]:
        """What sessions before this one left of a family: read once, before this one adds to it."""
        if device not in self._left:
            self._left[device] = read_parts(self.parts / device)
        return [line for line in self._left[device] if line.get("family") == family]


def _unexplained(results: Iterable[CaseResult]) -> list[tuple[str, Deviation]]:
    return [(r.kind, d) for r in results for d in r.deviations if d.ledger is None]


def _some(kinds: tuple[str, ...], id: str) -> tuple[str, ...]:
    """One in `EVERY` of ``kinds``, beginning as the id has it; all where they are fewer than that."""
    return kinds[int(id, 16) % EVERY :: EVERY] if len(kinds) >= EVERY else kinds


def _key(kind: str, deviation: Deviation) -> tuple[str, str, str]:
    return kind, deviation.clause, deviation.gap
