"""Is a legacy hook that is wrong seen to be in every family, whatever the ledger explains?"""

from __future__ import annotations

from functools import cache
from itertools import islice

import numpy as np
import pytest
from faults.engine import LEGACY, Fault
from faults.legacy import IN_EVERY_FAMILY
from faults.samples import known

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.networks.examine import examine
from hookcheck.probe.run import observe, unavailable
from hookcheck.suite import conformance_folder
from hookcheck.topology.corpus import read
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.model import Topology, size
from hookcheck.topology.values import values

MOST = 2
"""How many topologies of a family a fault may need to show itself."""


@cache
def smallest(family: str) -> tuple[Topology, ...]:
    """The smallest on which a legacy hook is told enough for a fault to show."""
    ordered = sorted(read(conformance_folder() / "corpus", family), key=size)
    return tuple(islice((t for t in ordered if not unavailable(t, None) and tells(t)), MOST))


def tells(topology: Topology) -> bool:
    """Whether some gradient has two numbers that differ, and the run ends as it should."""
    seen = observe(topology, values(topology), "backward")
    gradients = [g for event in seen.events if event.arguments[0] for g in event.arguments[0]]
    return not seen.raised and any(isinstance(g, np.ndarray) and len(np.unique(g)) > 1 for g in gradients)


def unexplained(topology: Topology, family: str) -> set[tuple[str, str]]:
    """Hook kind and clause of every deviation that the ledger has no entry for."""
    results = examine(topology, family, LEGACY, CLAUSES.values(), known())
    return {(result.kind, d.clause) for result in results for d in result.deviations if d.ledger is None}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sound_legacy_hook_is_explained(family: str) -> None:
    assert smallest(family)
    assert [unexplained(topology, family) for topology in smallest(family)] == [set()] * len(smallest(family))


@pytest.mark.slow
@pytest.mark.parametrize("fault", IN_EVERY_FAMILY, ids=lambda fault: fault.what)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_fault_is_caught_under_the_ledger(family: str, fault: Fault) -> None:
    left = {(kind, "P2-12") for kind in LEGACY}
    for topology in smallest(family):
        if left:
            with fault.patch():
                left -= unexplained(topology, family)
    assert left == set()
