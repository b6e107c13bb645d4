"""Faults that networks show, which clauses catch each under the ledger, and which entries excuse one.

A fault is caught by what the ledger does not explain. An entry excuses it on a network where it explains, alone or with
others, all that the fault changes there: the case would be green.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .calls import CALLS
from .contexts import CONTEXTS
from .engine import Fault
from .firing import FIRING
from .forward_calls import FORWARD_CALLS
from .gradients import GRADIENTS
from .graph_hooks import GRAPH_HOOKS
from .legacy import IN_EVERY_FAMILY
from .observers import OBSERVERS
from .places import PLACES
from .samples import Shown, deviations, samples, sound
from .tensors import TENSORS

FAULTS = (
    *(*GRADIENTS, *FIRING, *CALLS, *OBSERVERS, *FORWARD_CALLS, *GRAPH_HOOKS, *CONTEXTS, *TENSORS, *PLACES),
    *IN_EVERY_FAMILY,
)
OFFERED = [fault for fault in FAULTS if fault.offered]


def showing(fault: Fault, kind: str) -> Iterator[frozenset[Shown]]:
    """What ``fault`` changes on one sample after the other; nothing on some.

    A network that torch is known to end by an exception shows no fault behind that, so it is no sample.
    """
    for topology in samples():
        before = sound(topology, kind)
        if any(deviation.gap == "raised" for deviation in before):
            continue
        with fault.patch():
            after = deviations(topology, kind)
        yield after - before


def until_caught(fault: Fault, kind: str) -> Iterator[frozenset[Shown]]:
    """The same, until each clause that the fault names has caught it."""
    left: set[str] = set(fault.clauses) or {"any"}
    for changes in showing(fault, kind):
        yield changes
        caught = catching([changes])
        left -= caught or set()
        if caught and (not left or not fault.clauses):
            return


def catching(shown: Iterable[frozenset[Shown]]) -> set[str]:
    """The clauses that catch a fault which shows this: by deviations that the ledger has no entry for."""
    return {deviation.clause for changes in shown for deviation in changes if deviation.entry is None}


def excusing(shown: Iterable[frozenset[Shown]]) -> set[str]:
    """The entries of the ledger that excuse it on some network."""
    explained = (changes for changes in shown if all(deviation.entry for deviation in changes))
    return {deviation.entry for changes in explained for deviation in changes if deviation.entry}
