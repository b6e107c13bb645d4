"""How an observed tuple of gradients differs from the expected one: the comparison behind all clauses on values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from hookcheck.contract.clause import NOTHING, Judgement
from hookcheck.contract.finding import UNKNOWN, Finding, Gradients
from hookcheck.contract.site import (
    ABSENT,
    ARGUMENT,
    CALL,
    CLOSE,
    COUNT,
    ENTRY,
    EQUAL,
    NONE,
    VALUE,
    Called,
    Site,
    SiteKind,
)
from hookcheck.networks.case import Case
from hookcheck.networks.legacy import Answers, carries
from hookcheck.oracle.due import Firing
from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.graph import Tensor
from hookcheck.oracle.last_node import Forms
from hookcheck.probe.observation import Copy, Event, dtype_of
from hookcheck.topology.primitive import Array


def values_differ(case: Case, firing: Firing, observed: Copy, expected: tuple[Gradient, ...]) -> Judgement:
    """Whether there are other gradients than are due among the positions at which both sides have one."""
    if not isinstance(observed, tuple):
        return NOTHING
    tensors = firing.call.args if expected is firing.grad_input else firing.call.outputs
    sides = enumerate(zip(observed, expected, tensors))
    both = [(i, o, e, t) for i, (o, e, t) in sides if o is not None and e is not None and t is not None]
    if not both:
        return NOTHING
    wrong = tuple(i for i, o, e, t in both if not case.close(o, e, t.dtype))
    if not wrong:
        return None
    moved = frozenset(i for i in wrong if _stands_elsewhere(case, observed[i], i, expected))
    gradients = Gradients(observed, wrong, moved, partial(identified, case, firing, observed))
    return Finding(_site(firing, expected), CLOSE, expected, gradients)


def _site(firing: Firing, expected: tuple[Gradient, ...], kind: SiteKind = VALUE, position: int | None = None) -> Site:
    name = "grad_input" if expected is firing.grad_input else "grad_output"
    return Site(kind, name if position is None else f"{name}[{position}]")


def _stands_elsewhere(case: Case, observed: Copy, position: int, expected: tuple[Gradient, ...]) -> bool:
    others = (e for i, e in enumerate(expected) if e is not None and i != position)
    return isinstance(observed, np.ndarray) and any(case.alike(observed, e) for e in others)


def states_differ(case: Case, firing: Firing, observed: Copy, expected: tuple[Gradient, ...]) -> Judgement:
    """The first position at which one side has a gradient and the other has None."""
    if not isinstance(observed, tuple) or not observed or not expected:
        return NOTHING
    unsure = firing.open if expected is firing.grad_output else frozenset()
    for i, (o, e) in enumerate(zip(observed, expected)):
        if (o is None) != (e is None) and i not in unsure:
            return Finding(_site(firing, expected, position=i), NONE, e, o)
    return None


def lengths_differ(case: Case, firing: Firing, observed: Copy, expected: tuple[Gradient, ...]) -> Judgement:
    """Whether there are too many or too few entries."""
    if not isinstance(observed, tuple):
        return NOTHING
    if len(observed) == len(expected):
        return None
    gradients = Gradients(observed, identify=partial(identified, case, firing, observed))
    return Finding(_site(firing, expected, ENTRY), COUNT, expected, gradients)


def calls_differ(answers: Answers) -> Finding:
    """How the calls of a legacy hook that are `OTHERWISE` differ from those of a hook on the Node."""
    if answers.wrong is None:
        due = len(answers.due)
        return Finding(Site(CALL), COUNT, due, due + len(answers.left))
    call, event = answers.wrong
    if event is None and not answers.left:
        return Finding(Site(CALL, f"backward {call.backward}"), COUNT, 1, 0)
    if event is None or not carries(call, event, answers.alike):
        events = answers.left if event is None else (event,)
        return lacks_the_output(call.gradient, events)
    return _unlike(event, call.forms)


def lacks_the_output(gradient: Gradient, events: Sequence[Event]) -> Finding:
    """No call of a legacy hook has the gradient of the first output among its ``grad_output``."""
    given = tuple(event.arguments[1] if len(event.arguments) > 1 else None for event in events)
    call = Called(events[0].path, events[0].number, "grad_output")
    return Finding(Site(VALUE, "grad_output of a call", call), ABSENT, gradient, given)


def _unlike(event: Event, forms: Forms) -> Finding:
    """How ``grad_input`` of a call differs from the form that is most like it."""
    observed, call = event.arguments[0], Called(event.path, event.number, "grad_input")
    if not isinstance(observed, tuple):
        return Finding(Site(ARGUMENT, "grad_input", call), EQUAL, forms[0], observed)
    alike = [form for form in forms if len(form) == len(observed)]
    if not alike:
        return Finding(Site(ENTRY, "grad_input", call), COUNT, max(forms, key=len), Gradients(observed))
    expected = alike[0]
    for i, (o, e) in enumerate(zip(observed, expected)):
        if (o is None) != (e is None):
            return Finding(Site(VALUE, f"grad_input[{i}]", call), NONE, e, o)
    shapes = (getattr(o, "shape", None) != getattr(e, "shape", None) for o, e in zip(observed, expected))
    unlike = tuple(i for i, differs in enumerate(shapes) if differs)
    wrong = unlike or (*range(len(expected)),)
    return Finding(Site(VALUE, "grad_input", call), CLOSE, expected, Gradients(observed, wrong))


def identified(case: Case, firing: Firing, observed: tuple[Copy, ...]) -> tuple[str, ...]:
    """Which gradient each entry really is: ``("bias", "input[0]", "weight transposed")``."""
    if id(observed) not in case.names:
        known = case.expected.known_gradients(firing.call, firing.backward)
        case.names[id(observed)] = tuple("None" if o is None else _name(case, o, known) for o in observed)
    return case.names[id(observed)]


def named(path: str | None) -> str:
    """The module at ``path`` for people; None stands for what is no module of the network."""
    return "another object" if path is None else path or "net"


def as_copied(value: Any) -> Copy:
    """What the oracle says of a value as the probe would have copied it."""
    if isinstance(value, Tensor):
        return value.array
    if isinstance(value, SimpleNamespace):
        return {key: as_copied(item) for key, item in vars(value).items()}
    if isinstance(value, dict):
        return {key: as_copied(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        items = [as_copied(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return None if value is None else repr(value)


def _name(case: Case, observed: Copy, known: Mapping[str, Array]) -> str:
    if not isinstance(observed, np.ndarray):
        return UNKNOWN
    dtype = dtype_of(observed)
    cast = "" if dtype in case.expected.trace.dtypes else f" as {dtype}"
    candidates = [(name, array) for name, array in known.items() if array.size == observed.size]
    for name, array in candidates:
        if case.alike(observed, array):
            return f"{name}{cast}"
    for name, array in candidates:
        if array.ndim == 2 and case.alike(observed, array.T):
            return f"{name} transposed{cast}"
        if case.alike(observed, array.reshape(observed.shape)):
            return f"{name} reshaped{cast}"
    return UNKNOWN
