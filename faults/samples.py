"""What faults are shown on: the networks by hand, and a few of every corpus."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import Ledger, applying, load
from hookcheck.networks.examine import examine
from hookcheck.networks.features import call_features
from hookcheck.oracle.expected import Expected
from hookcheck.probe.run import unavailable
from hookcheck.suite import conformance_folder
from hookcheck.topology.corpus import read
from hookcheck.topology.model import Topology
from hookcheck.topology.values import values

from .networks import BY_HAND

MOST = 3
"""How many topologies of one corpus faults are shown on."""

BY_HAND_ALONE = "none"
"""The family of a network by hand, which no entry of the ledger names."""


class Shown(NamedTuple):
    """A deviation as it shows on a network, and the entry of the ledger that explains it, or None."""

    clause: str
    topology: str
    subject: str
    gap: str
    entry: str | None


@cache
def samples() -> tuple[Topology, ...]:
    """The networks by hand, then of every corpus the first few that are like none of those before them."""
    return tuple(_families())


@cache
def known() -> Ledger:
    """What the ledger has for the installed torch."""
    return applying(load(), torch.__version__, "cpu")


@cache
def _families() -> dict[Topology, str]:
    """Each of the samples with its family."""
    by_topology = {topology: BY_HAND_ALONE for topology in BY_HAND.values() if not unavailable(topology, None)}
    seen = set().union(*map(combinations, by_topology))
    for path in sorted((conformance_folder() / "corpus").glob("*.jsonl")):
        chosen: list[Topology] = []
        for topology in read(path.parent, path.stem):
            new = combinations(topology) - seen
            if new and len(chosen) < MOST and not unavailable(topology, None):
                seen |= new
                chosen.append(topology)
        by_topology.update(dict.fromkeys(chosen, path.stem))
    return by_topology


def combinations(topology: Topology) -> set[object]:
    """How many calls of which features there are, and how the topology is run."""
    calls = Expected(topology, values(topology)).trace.calls
    features = [call_features(call) for call in calls]
    return {
        ("run", topology.training, topology.dtype, bool(topology.frozen), len(calls[0].args)),
        *((*(f[key] for key in ("module", "mode", "inputs", "outputs")), bool(topology.frozen)) for f in features),
        *(("last", f.get("last"), f.get("rank")) for f in features),
    }


def deviations(topology: Topology, kind: str) -> frozenset[Shown]:
    """What deviates about one topology with one hook kind, on the installed torch as it now is."""
    family = _families().get(topology, BY_HAND_ALONE)
    return frozenset(
        Shown(d.clause, result.topology, d.subject, d.gap, d.ledger)
        for result in examine(topology, family, (kind,), CLAUSES.values(), known())
        for d in result.deviations
    )


@cache
def sound(topology: Topology, kind: str) -> frozenset[Shown]:
    """The deviations that no fault is to blame for: this is asked before any fault is put in."""
    return deviations(topology, kind)
