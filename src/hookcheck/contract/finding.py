"""What a clause finds wrong, and which of it the ledger explains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hookcheck.contract.clause import Mismatch
from hookcheck.contract.evidence import Evidence
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import Deviation
from hookcheck.topology.model import Topology

Features = Mapping[str, frozenset[str]]
"""What matters about a subject, as sets of words by feature, for entries of the ledger to name."""


@dataclass(frozen=True)
class Finding:
    """A subject that deviates from a clause: its name, how it deviates, and its features for the ledger."""

    clause: str
    subject: str
    mismatch: Mismatch
    features: Features


SORT = ("last", "rank", "bias")
"""The features that tell sorts of one known deviation apart: each has evidence of its own."""


def explained(
    topology: Topology | None,
    family: str,
    kind: str,
    findings: Iterable[Finding],
    ledger: Ledger,
    evidence: Evidence | None = None,
) -> tuple[Deviation, ...]:
    """The findings as deviations, each with the ledger entry that explains it if one does.

    Beside what is not explained everything is put into words; otherwise what ``evidence`` wants (None: everything), of
    programs, which have no ``topology``, all.
    """
    known = [(f, ledger.explain(f.clause, family, kind, f.mismatch, f.features)) for f in findings]
    if any(entry is None for _, entry in known):
        evidence = None
    return tuple(
        Deviation(finding.clause, finding.subject, finding.mismatch.gap, *words, ledger=entry)
        for finding, entry in known
        for sort in [(finding.clause, kind, entry, *(finding.features.get(key) for key in ledger.sorts(entry, SORT)))]
        for words in [
            finding.mismatch.told()
            if topology is None or evidence is None or evidence.wants(topology, sort)
            else ("", "")
        ]
    )


def unexplained(deviations: Iterable[Deviation]) -> Iterator[Deviation]:
    """Those of ``deviations`` that no ledger entry explains."""
    return (d for d in deviations if d.ledger is None)
