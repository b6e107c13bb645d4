"""In which order are several hooks of a module called, and what does each get of what those before it returned?"""

from __future__ import annotations

from typing import Any

import numpy as np

from hookcheck.contract.clause import NOTHING, PROMISE, Judgement, Subject, clause
from hookcheck.contract.finding import Finding
from hookcheck.contract.site import CALL, COUNT, EQUAL, ORDER, VALUE, Called, Site
from hookcheck.hooks.acts import FORWARD, Acts, share
from hookcheck.hooks.kinds import HookKind
from hookcheck.networks.case import Case
from hookcheck.probe.observation import Copy, dtype_of, numbers, same

REGISTRATION = "torch.nn.Module, hook registration: prepend, 'global … will fire before'; return values"


def _chained(kind: HookKind) -> bool:
    return bool(kind.then)


@clause("CH-01", PROMISE, Subject.RUN, "1.7", REGISTRATION, of=_chained)
def each_gets_what_the_one_before_returned(case: Case, _: None) -> Judgement:
    """Of several hooks on a module the global ones are called first, then those that were put before the others, then
    the others as they were registered; each is given what the one before it returned."""
    if case.observed.raised:
        return NOTHING
    links, events, chained = len(FORWARD), case.observed.events, case.observed.chained
    if case.expected.trace.repeats:  # what backward runs again may end between two hooks
        events = events[: len(case.expected.trace.calls)]
        chained = chained[: links * len(events)]
    seen = [(link, event.path) for link, event in chained]
    due = [(link, event.path) for event in events for link in range(links)]
    if len(seen) != len(due):
        return Finding(Site(CALL), COUNT, len(due), len(seen))
    if seen != due:
        return Finding(Site(CALL), ORDER, _named(due), _named(seen))
    results = {(call.path, call.number): call.result for call in case.expected.trace.calls}
    expected: tuple[Copy, ...] = ()
    for link, event in chained:
        if not link:  # what the first one gets, the others are held against
            expected = _plain(event.arguments, results.get((event.path, event.number)))
            continue
        expected = _passed_on(case.kind.acts, link - 1, expected)
        if not _same(event.arguments, expected):
            called = Called(event.path, event.number, link=link)
            return Finding(Site(VALUE, _named([(link, event.path)])[0], called), EQUAL, expected, event.arguments)
    return None if seen else NOTHING


def _named(calls: list[tuple[int, str]]) -> list[str]:
    return [f"hook {link} of {path or 'net'}" for link, path in calls]


def _plain(arguments: tuple[Copy, ...], result: Any) -> tuple[Copy, ...]:
    """``arguments`` where an output is a tuple of a type of torch's own (``torch.max``), with a plain tuple for it."""
    *others, last = arguments
    if not isinstance(last, dict) or type(result) is not tuple:
        return arguments
    return (*others, tuple(item for key, item in last.items() if key != "type"))


def _passed_on(acts: Acts, link: int, arguments: tuple[Copy, ...]) -> tuple[Copy, ...]:
    """What the hook behind a ``link`` of a chain is given, the module aside, if that one is given ``arguments``."""
    if acts.outputs:
        *others, output = arguments
        if isinstance(output, tuple):
            return (*others, tuple(_scaled(acts, link, 0, o) for o in output))
        return (*others, _scaled(acts, link, 0, output))
    first, *others = arguments
    if not isinstance(first, tuple):
        return arguments  # clauses on what a single hook is called with judge that
    reached = len(first) if acts.backward else 1
    return (tuple(_scaled(acts, link, i, v) if i < reached else v for i, v in enumerate(first)), *others)


def _scaled(acts: Acts, link: int, position: int, value: Copy) -> Copy:
    """A floating tensor times what a ``link`` scales it by; all else as it is."""
    if not isinstance(value, np.ndarray) or not (dtype_of(value) == "bfloat16" or value.dtype.kind in "fc"):
        return value
    plain = numbers(value)
    return np.asarray(plain * plain.dtype.type(share(acts, link, position)))


def _same(observed: Copy, expected: Copy) -> bool:
    """Whether both hold the same numbers, those of bfloat16 in whatever form."""
    if isinstance(observed, np.ndarray) and isinstance(expected, np.ndarray):
        seen, due = numbers(observed), numbers(expected)
        return same(seen, due) or np.array_equal(seen, due, equal_nan=observed.dtype.kind in "fc")
    if isinstance(observed, tuple) and isinstance(expected, tuple):
        return len(observed) == len(expected) and all(map(_same, observed, expected))
    return same(observed, expected)
