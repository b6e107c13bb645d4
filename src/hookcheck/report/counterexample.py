"""What does a counterexample look like to people? The promise, what was seen, and the network as PyTorch source."""

from __future__ import annotations

from collections.abc import Iterable

from hookcheck.contract.clause import clause_named
from hookcheck.contract.verdict import CaseResult, Deviation
from hookcheck.programs.program import Program
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology
from hookcheck.topology.source import source


def network_text(topology: Topology, family: str, kind: str, deviation: Deviation) -> str:
    """The text of one deviation; ends with a program that needs nothing but torch."""
    id = identify(topology)
    return "\n".join(
        [
            f"{deviation.clause} ({family}, {kind}): {deviation.gap} at {deviation.subject}",
            f"promise:  {clause_named(deviation.clause).statement}",
            f"expected: {deviation.expected}",
            f"observed: {deviation.observed}",
            f"script:   hookcheck repro {id} --clause {deviation.clause} --kind {kind}",
            f"topology {id}:",
            "",
            source(topology).script(),
        ]
    )


def lost_text(topology: Topology, lost: CaseResult) -> str:
    """The text of a case in which the process was lost; ends with the network as a program."""
    return "\n".join(
        [
            f"{lost.outcome} ({lost.family}, {lost.kind}): {lost.reason}",
            f"topology {lost.topology}:",
            "",
            source(topology).script(),
        ]
    )


def program_text(program: Program, deviations: Iterable[Deviation]) -> str:
    """The text of what is not as a program states; ends with the program."""
    facts = [
        line
        for d in deviations
        for line in (f"{d.subject}: {d.gap}", f"  expected: {d.expected}", f"  observed: {d.observed}")
    ]
    return "\n".join(
        [
            f"{program.id} ({program.chapter}): {program.statement}",
            f"source:   {program.source}",
            *facts,
            "",
            program.source_code,
        ]
    )
