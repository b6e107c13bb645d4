"""What does a pytest item check? A cell of the contract, the exploration of one family, or one share of a soak."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from hookcheck.contract.clause import CLAUSES, UNSPECIFIED
from hookcheck.contract.verdict import CRASHED, DEVIATES, TIMED_OUT, CaseResult, Deviation
from hookcheck.programs.program import Program
from hookcheck.report.counterexample import lost_text, network_text, program_text
from hookcheck.run.session import Session, Unexplained
from hookcheck.run.soak import Soak
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology, size


@dataclass(frozen=True)
class CellItem:
    """One cell of the contract as a pytest item: clause × family × hook kind on a device."""

    session: Session
    clause: str
    family: str
    kind: str
    device: str

    def check(self) -> None:
        """Judges the cell: fails on what the ledger does not explain and on entries that explain nothing; a deviation
        that the ledger knows is an expected failure, and a cell without verdict is a skip."""
        cell, results = self.session.cell(self.clause, self.family, self.kind, self.device)
        if CLAUSES[self.clause].rank == UNSPECIFIED:
            pytest.skip("unspecified: shown, never judged")
        if cell.verdict in (CRASHED, TIMED_OUT):
            pytest.fail(self._lost(results), pytrace=False)
        stale = self.session.ledgers[self.device].stale(results, self.clause, self.family, self.kind)
        if stale and any(result.outcome == "ran" for result in results):
            unknown = next((d for _, d in self._unknown(results)), None)
            pytest.fail(
                f"the ledger calls this cell deviating ({stale[0].id}), and nothing that ran shows it so: "
                "narrow the entry, or remove it if the deviation is gone"
                + (f"; no entry explains: {unknown.gap} at {unknown.subject}" if unknown else ""),
                pytrace=False,
            )
        if cell.unexplained:
            pytest.fail(self._message(results), pytrace=False)
        if cell.verdict == DEVIATES:
            known = {d.ledger for r in results for d in r.deviations if d.clause == self.clause and d.ledger}
            raise pytest.xfail.Exception(f"known: {', '.join(sorted(known))}", pytrace=False)
        if not cell.judged:
            pytest.skip(f"{cell.verdict}: {cell.reason}")

    def _message(self, results: Iterable[CaseResult]) -> str:
        """What the ledger does not explain: the smallest network that shows it, or the program with all its facts."""
        unknown = self._unknown(results)
        clause = CLAUSES[self.clause]
        if isinstance(clause, Program):
            return program_text(clause, [d for _, d in unknown])
        topology, deviation = min(((self._known[id], d) for id, d in unknown), key=lambda item: size(item[0]))
        return network_text(topology, self.family, self.kind, deviation)

    def _unknown(self, results: Iterable[CaseResult]) -> list[tuple[str, Deviation]]:
        """What no entry explains, each with the topology that shows it."""
        deviations = [(r.topology, d) for r in results for d in r.deviations]
        return [(id, d) for id, d in deviations if d.clause == self.clause and d.ledger is None]

    def _lost(self, results: Iterable[CaseResult]) -> str:
        """In which case the process was lost: the smallest network, or the program."""
        lost = [result for result in results if result.outcome in (CRASHED, TIMED_OUT)]
        clause = CLAUSES[self.clause]
        if isinstance(clause, Program):
            return f"{lost[0].outcome}: {lost[0].reason}\n{program_text(clause, ())}"
        smallest = min(lost, key=lambda result: size(self._known[result.topology]))
        return lost_text(self._known[smallest.topology], smallest)

    @property
    def _known(self) -> dict[str, Topology]:
        return {identify(topology): topology for topology in self.session.corpus[self.family]}


@dataclass(frozen=True)
class Exploration:
    """New topologies of one family on a device, as a pytest item."""

    session: Session
    family: str
    device: str
    examples: int

    def check(self) -> None:
        """Fails with the smallest new topology that deviates in a way that the ledger does not explain."""
        _held(lambda: self.session.explore(self.family, self.device, self.examples))


@dataclass(frozen=True)
class Endless:
    """One share of a soak, as a pytest item."""

    soak: Soak
    capture: Any

    @property
    def device(self) -> str:
        """The device that it runs on."""
        return self.soak.device

    def check(self) -> None:
        """Fails with the smallest new topology that deviates in a way that the ledger does not explain."""
        _held(lambda: self.soak.run(self._say))

    def _say(self, line: str) -> None:
        """Progress goes past pytest's capture to standard error, from workers too."""
        with self.capture.global_and_fixture_disabled():
            print(line, file=sys.stderr, flush=True)


def _held(explore: Callable[[], int]) -> None:
    """Fails with what ``explore`` finds, told once: within the ``except`` pytest would tell the cause as well."""
    try:
        explore()
        return
    except Unexplained as error:
        unexplained = str(error)
    pytest.fail(unexplained, pytrace=False)


def cells_of(items: Iterable[pytest.Item]) -> list[CellItem]:
    """The cells that ``items`` check."""
    values = (value for item in items if hasattr(item, "callspec") for value in item.callspec.params.values())
    return [value for value in values if isinstance(value, CellItem)]
