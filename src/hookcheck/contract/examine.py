"""What becomes of one topology? It is worked out once, run once without hooks and once a hook kind, and judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hookcheck.contract.case import Case
from hookcheck.contract.clause import Clause
from hookcheck.contract.judge import judge
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import NOT_OFFERED, NOT_RUN, RAN, CaseResult
from hookcheck.oracle.expected import Expected
from hookcheck.probe.kinds import KINDS
from hookcheck.probe.run import lacking, observe, unavailable
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology
from hookcheck.topology.values import values


def examine(
    topology: Topology,
    family: str,
    kinds: Iterable[str],
    clauses: Iterable[Clause],
    ledger: Ledger,
    device: str = "cpu",
    origin: str = "corpus",
) -> Iterator[CaseResult]:
    """One result for each hook kind, in order; torch runs once for each and once without hooks."""
    id, clauses = identify(topology), tuple(clauses)
    if topology.device not in ("any", device):
        yield from (
            CaseResult(family, id, kind, origin, NOT_RUN, f"the topology is about {topology.device}") for kind in kinds
        )
        return
    plain, unable = None, unavailable(topology, None)
    for kind in kinds:
        reason = unable or lacking(kind)
        if reason:
            yield CaseResult(family, id, kind, origin, NOT_OFFERED, reason)
            continue
        if plain is None:
            numbers = values(topology)
            expected, plain = Expected(topology, numbers), observe(topology, numbers, None, device)
        observed = observe(topology, numbers, kind, device)
        case = Case(topology, KINDS[kind], device, expected, observed, plain)
        judged, deviations = judge(case, clauses, family, ledger)
        yield CaseResult(family, id, kind, origin, RAN, judged=judged, deviations=deviations)
