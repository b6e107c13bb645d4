"""What is due of a control where that is something else than of its experiment: in another network or call, or without
hooks.

A judge says what it expects of what is wrong alone. So a copy of what torch gave is spoilt, and the judge is asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hookcheck.contract.clause import clause_named
from hookcheck.networks.case import Case
from hookcheck.networks.judge import deviating
from hookcheck.oracle.expected import Expected
from hookcheck.probe.observation import Array, Copy, Observation
from hookcheck.repro.question import CALLS, CLOSE, COUNT, TYPE, VALUE, Question, expression, question
from hookcheck.repro.reduce import INVALID
from hookcheck.repro.sighting import Sighting, case_of
from hookcheck.repro.words import derivation
from hookcheck.topology.model import Topology
from hookcheck.topology.values import values

FAR = 1000.0
"""So much is added to a number that is spoilt: rounding explains less."""


@dataclass(frozen=True)
class Due:
    """What a control is asked, with what is expected of it, and ``why`` that is."""

    asked: Question
    why: str


def due(topology: Topology, sighting: Sighting, asked: Question) -> Due | None:
    """What is due where the question looks, in a network of which the clause holds; None where that is not known."""
    clause = clause_named(sighting.symptom.clause)
    with contextlib.suppress(*INVALID, RuntimeError):
        case = case_of(topology, sighting.case.kind, sighting.case.device)
        if case is None or case.observed.raised or any(deviating(case, clause)):
            return None
        return _judged(case, sighting, asked)
    return None


def dues_of_call(event: int, sighting: Sighting, asked: Question) -> Iterator[Due]:
    """What may be due of another call of the same hook in the same run, none where that call is wrong as well.

    A judge pairs what is due with the calls that come closest to it. So one is asked twice, the second time with the
    call in question further off.
    """
    case, other = sighting.case, replace(asked, event=event)
    with contextlib.suppress(*INVALID):
        if _place(other) in (_place(each) for _, each in _questions(case, sighting)):
            return
        further_off = (replace(case, observed=observed) for observed in _spoilt(case, asked))
        yield from filter(None, (_judged(each, sighting, other) for each in (case, *further_off)))


def _judged(case: Case, sighting: Sighting, asked: Question) -> Due | None:
    """What a judge expects where the question looks, of a copy of what torch gave that is wrong there."""
    for observed in _spoilt(case, asked):
        for spoilt, other in _questions(replace(case, observed=observed), sighting):
            if _place(other) == _place(asked):
                return Due(other, derivation(spoilt, other))
    return None


def _questions(case: Case, sighting: Sighting) -> Iterator[tuple[Case, Question]]:
    """The case with each question about it that the clause raises."""
    for subject, located in deviating(case, clause_named(sighting.symptom.clause)):
        yield case, question(replace(sighting, case=case, subject=subject, finding=located.finding))


def due_of_leaf(case: Case, name: str, asked: Question, hooked: bool) -> Due | None:
    """The ``.grad`` that is due of a leaf in the same network, with hooks that act or without; None where it has not
    the shape of what is asked about."""
    expected = case.expected
    if not hooked:
        expected = Expected(case.topology, values(case.topology), release=expected.release, device=case.device)
    gradient = expected.leaf_gradients.get(name)
    if gradient is None or not asked.of_numbers or gradient.shape != asked.observed.shape:
        return None
    (wrong,) = _wrong(np.asarray(gradient), asked)
    of_leaf = Question(VALUE, CLOSE, path=expression(case, f"{name}.grad"), expected=gradient, dtype=asked.dtype)
    return Due(replace(of_leaf, observed=wrong), derivation(case, asked))


def _place(asked: Question) -> Question:
    return replace(asked, expected=None, dtype="", observed=None)


def _spoilt(case: Case, asked: Question) -> Iterator[Observation]:
    """What was observed, each time with another thing wrong that the question may be about."""
    observed = case.observed
    if asked.place == VALUE:
        for name, gradient in observed.gradients.items():
            if expression(case, f"{name}.grad") == asked.path:
                for changed in _changed(gradient, asked):
                    yield replace(observed, gradients={**observed.gradients, name: changed})
    if asked.place == CALLS:
        for i, event in enumerate(observed.events):
            if event.path != asked.path:
                continue
            if asked.relation == COUNT:
                yield replace(observed, events=observed.events[:i] + observed.events[i + 1 :])
                yield replace(observed, events=(*observed.events, event._replace(number=len(case.events[event.path]))))
            elif event.number == asked.event:
                for arguments in _changed(event.arguments, asked):
                    events = (*observed.events[:i], event._replace(arguments=arguments), *observed.events[i + 1 :])
                    yield replace(observed, events=events)


def _changed(copy: Copy, asked: Question) -> Iterator[Any]:
    """The copy, each time with another of its tensors changed as the question may be about it."""
    if isinstance(copy, np.ndarray):
        yield from _wrong(copy, asked)
    elif isinstance(copy, dict):
        for key, item in copy.items():
            yield from ({**copy, key: changed} for changed in _changed(item, asked))
    elif isinstance(copy, (tuple, list)):
        for i, item in enumerate(copy):
            for changed in _changed(item, asked):
                yield type(copy)([*copy[:i], changed, *copy[i + 1 :]])


def _wrong(array: Array, asked: Question) -> Iterator[Array | None]:
    if asked.relation == TYPE:
        yield None
    elif asked.of_numbers and array.shape == asked.observed.shape and array.dtype.kind in "fc":
        changed = array.copy()
        changed[asked.at] += FAR
        yield changed
