"""What does a counterexample look like to people? The promise, what was seen, and the network as PyTorch source."""

from __future__ import annotations

from hookcheck.contract.clause import clause_named
from hookcheck.contract.verdict import Deviation
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology
from hookcheck.topology.source import source


def told(topology: Topology, family: str, kind: str, deviation: Deviation) -> str:
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
