"""Faults that networks show, and the clauses that catch each on the networks of `faults.samples`."""

from __future__ import annotations

from .calls import CALLS
from .contexts import CONTEXTS
from .engine import Fault
from .firing import FIRING
from .forward_calls import FORWARD_CALLS
from .gradients import GRADIENTS
from .graph_hooks import GRAPH_HOOKS
from .legacy import IN_EVERY_FAMILY
from .observers import OBSERVERS
from .samples import deviations, samples, sound

FAULTS = (*GRADIENTS, *FIRING, *CALLS, *OBSERVERS, *FORWARD_CALLS, *GRAPH_HOOKS, *CONTEXTS, *IN_EVERY_FAMILY)
OFFERED = [fault for fault in FAULTS if fault.offered]


def catching(fault: Fault, kind: str) -> set[str]:
    """The clauses that catch ``fault``, sought until all are found that it names."""
    found: set[str] = set()
    for topology in samples():
        before = sound(topology, kind)
        with fault.patch():
            found |= {clause for clause, *_ in deviations(topology, kind) - before}
        if found and set(fault.clauses) <= found:
            break
    return found
