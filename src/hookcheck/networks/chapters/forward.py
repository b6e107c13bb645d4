"""When do forward pre-hooks and forward hooks run, and what are they told?

A forward pre-hook runs each time that its module is called, before ``forward``, and is told the positional arguments;
a forward hook runs after it and is told the output as well. With ``with_kwargs`` both are told the keyword arguments.
What they are told is held against what the oracle works out, for every module at every depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hookcheck.contract.clause import NOTHING, PROMISE, Judgement, Subject, clause
from hookcheck.contract.finding import Finding
from hookcheck.contract.site import ARGUMENT, CALL, COUNT, EQUAL, ORDER, Called, Site
from hookcheck.hooks.kinds import FORWARD, FORWARD_PRE, HookKind
from hookcheck.networks.case import Case
from hookcheck.networks.gradients import as_copied, named
from hookcheck.oracle.graph import CallTrace
from hookcheck.probe.observation import Copy, Event

PRE = "torch.nn.Module.register_forward_pre_hook"
POST = "torch.nn.Module.register_forward_hook"


def _forwards(kind: HookKind) -> bool:
    return kind.call in (FORWARD_PRE, FORWARD)


def _with_kwargs(kind: HookKind) -> bool:
    return kind.kwargs


def _with_output(kind: HookKind) -> bool:
    return kind.call == FORWARD


@clause("FN-01", PROMISE, Subject.RUN, "1.7", f"{PRE}; {POST}: 'every time'", of=_forwards)
def runs_once_each_call(case: Case, _: None) -> Judgement:
    """A forward pre-hook runs once each time that its module is called, before what the call calls; a forward hook
    runs once each time, after it."""
    if case.observed.raised:
        return NOTHING
    expected = [call.path for call in _calls(case)]
    observed = [event.path for event in case.observed.events]
    if case.expected.trace.repeats:
        first = [event.path for event in case.observed.events if not event.again]
        if first in (expected, observed):
            expected += _again(case, observed[len(expected) :])
        else:
            observed = first  # what backward runs again makes up for nothing
    if observed == expected:
        return None
    relation = ORDER if sorted(observed) == sorted(expected) else COUNT
    return Finding(Site(CALL), relation, [path or "net" for path in expected], [path or "net" for path in observed])


@clause("FN-02", PROMISE, Subject.RUN, "1.7", f"{PRE}; {POST}: signature", of=_forwards)
def told_the_arguments(case: Case, _: None) -> Judgement:
    """Forward hooks and pre-hooks are called with the module and the tuple of the positional arguments of the call,
    nothing added and nothing left out."""
    for call, event in _paired(case):
        count = 1 + case.kind.kwargs + (case.kind.call == FORWARD)
        if event.given != call.path:
            return _wrong(call, event, "module", call.path or "net", named(event.given))
        if len(event.arguments) != count:
            return Finding(_site(call, event, "arguments", ""), COUNT, count, event.arguments)
        if not case.agrees(event.arguments[0], _arguments_at(case, call)[0]):
            return _wrong(call, event, "args", as_copied(_arguments_at(case, call)[0]), event.arguments[0])
    return None if case.observed.events else NOTHING


@clause("FN-03", PROMISE, Subject.RUN, "2.0", f"{PRE}; {POST}: with_kwargs", of=_with_kwargs)
def told_the_keyword_arguments(case: Case, _: None) -> Judgement:
    """With ``with_kwargs`` they get the keyword arguments of the call as a dict as well."""
    for call, event in _paired(case):
        if len(event.arguments) > 1 and not case.agrees(event.arguments[1], _arguments_at(case, call)[1]):
            return _wrong(call, event, "kwargs", as_copied(_arguments_at(case, call)[1]), event.arguments[1])
    return None if case.observed.events else NOTHING


@clause("FN-04", PROMISE, Subject.RUN, "1.7", f"{POST}, signature", of=_with_output)
def told_the_output(case: Case, _: None) -> Judgement:
    """A forward hook gets the output as ``forward`` returned it, in whatever container."""
    for call, event in _paired(case):
        if event.arguments and not case.agrees(event.arguments[-1], call.result):
            return _wrong(call, event, "output", as_copied(call.result), event.arguments[-1])
    return None if case.observed.events else NOTHING


def _calls(case: Case) -> list[CallTrace]:
    """The calls of modules in the order in which the hook is due."""
    return case.expected.trace.calls if case.kind.call == FORWARD_PRE else case.expected.trace.ended


def _again(case: Case, observed: list[str]) -> list[str]:
    """What of that the passes may run again: each checkpoint once a pass, from its beginning as far as it is needed;
    one that is within another once by itself, beside the other."""
    due: list[str] = []
    trace = case.expected.trace
    parts = [[call.path for call in part[case.kind.call == FORWARD]] for part in trace.repeats] * len(trace.passes)
    while parts:
        prefix, part = max(((_alike(each, observed[len(due) :]), each) for each in parts), key=lambda pair: pair[0])
        due += part[:prefix]
        parts.remove(part)
    return due


def _alike(part: list[str], observed: list[str]) -> int:
    """How many paths the two have in common from their beginning on."""
    return next((i for i, (a, b) in enumerate(zip(part, observed)) if a != b), min(len(part), len(observed)))


def _arguments_at(case: Case, call: CallTrace) -> tuple[Any, Any]:
    """The positional and keyword arguments as they are when the hook is called."""
    return (call.given, dict(call.keywords)) if case.kind.call == FORWARD_PRE else call.left


def _paired(case: Case) -> Iterator[tuple[CallTrace, Event]]:
    """Each call with its event: the k-th call of a module has the k-th event."""
    events = {path: iter(events) for path, events in case.events.items()}
    for call in _calls(case):
        event = next(events.get(call.path, iter(())), None)
        if event is not None:
            yield call, event


def _wrong(call: CallTrace, event: Event, what: str, expected: Copy, observed: Copy) -> Finding:
    return Finding(_site(call, event, what, what), EQUAL, expected, observed)


def _site(call: CallTrace, event: Event, what: str, argument: str) -> Site:
    return Site(ARGUMENT, f"{what} of {call.subject}", Called(event.path, event.number, argument))
