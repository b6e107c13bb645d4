"""Findings as deviations: each with the entry of the ledger that explains it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hookcheck.contract.evidence import Evidence
from hookcheck.contract.finding import Finding
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import Deviation
from hookcheck.topology.model import Topology

Features = Mapping[str, frozenset[str]]
"""What matters about a subject, as sets of words by feature, for entries of the ledger to name."""


@dataclass(frozen=True)
class Located:
    """A finding with the clause and the subject that it is about, and what matters about that for the ledger."""

    clause: str
    subject: str
    finding: Finding
    features: Features


SORT = ("last", "rank", "bias")
"""The features that tell sorts of one known deviation apart: each has evidence of its own."""


def explained(
    topology: Topology | None,
    family: str,
    kind: str,
    findings: Iterable[Located],
    ledger: Ledger,
    evidence: Evidence | None = None,
) -> tuple[Deviation, ...]:
    """The findings as deviations, each with the ledger entry that explains it if one does.

    Beside what is not explained everything is put into words; otherwise what ``evidence`` wants (None: everything), of
    programs, which have no ``topology``, all.
    """
    known = [(at, ledger.explain(at.clause, family, kind, at.finding, at.features)) for at in findings]
    if any(entry is None for _, entry in known):
        evidence = None
    return tuple(
        Deviation(at.clause, at.subject, at.finding.gap, *words, entry, at.finding.relation, at.finding.site)
        for at, entry in known
        for sort in [(at.clause, kind, entry, *(at.features.get(key) for key in ledger.sorts(entry, SORT)))]
        for words in [
            at.finding.words() if topology is None or evidence is None or evidence.wants(topology, sort) else ("", "")
        ]
    )


def unexplained(deviations: Iterable[Deviation]) -> Iterator[Deviation]:
    """Those of ``deviations`` that no ledger entry explains."""
    return (d for d in deviations if d.ledger is None)
