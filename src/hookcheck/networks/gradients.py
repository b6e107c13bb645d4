"""How does an observed tuple of gradients differ from the expected one?

The one comparison behind all clauses on values, and the words in which it is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from hookcheck.contract.clause import NOTHING, Judgement, Mismatch
from hookcheck.networks.case import Case
from hookcheck.networks.legacy import Answers, carries
from hookcheck.oracle.expected import Firing
from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.graph import Tensor
from hookcheck.oracle.last_node import Forms
from hookcheck.probe.observation import Copy, dtype_of, numbers
from hookcheck.topology.primitive import Array


def values_differ(case: Case, firing: Firing, observed: Copy, expected: tuple[Gradient, ...]) -> Judgement:
    """The costliest mismatch among the positions at which both sides have a gradient."""
    if not isinstance(observed, tuple):
        return NOTHING
    tensors = firing.call.args if expected is firing.grad_input else firing.call.outputs
    sides = enumerate(zip(observed, expected, tensors))
    both = [(i, o, e, t) for i, (o, e, t) in sides if o is not None and e is not None and t is not None]
    if not both:
        return NOTHING
    wrong = [(i, o) for i, o, e, t in both if not case.close(o, e, t.dtype)]
    if not wrong:
        return None
    names = identified(case, firing, observed)
    gaps = [_gap(case, o, names[i], i, expected) for i, o in wrong]
    gap = next(g for g in ("wrong values", "parameter gradients mixed in", "wrong slots", "wrong shape") if g in gaps)
    return _mismatch(case, firing, gap, observed, expected)


def states_differ(case: Case, firing: Firing, observed: Copy, expected: tuple[Gradient, ...]) -> Judgement:
    """The first position at which one side has a gradient and the other has None."""
    if not isinstance(observed, tuple) or not observed or not expected:
        return NOTHING
    unsure = firing.open if expected is firing.grad_output else frozenset()
    for i, (o, e) in enumerate(zip(observed, expected)):
        if (o is None) != (e is None) and i not in unsure:
            gap = "None instead of a gradient" if o is None else "a gradient instead of None"
            return Mismatch(gap, partial(shown, expected), partial(shown, observed))
    return None


def lengths_differ(case: Case, firing: Firing, observed: Copy, expected: tuple[Gradient, ...]) -> Judgement:
    """Whether there are too many or too few entries."""
    if not isinstance(observed, tuple):
        return NOTHING
    if len(observed) == len(expected):
        return None
    gap = "extra entries" if len(observed) > len(expected) else "missing entries"
    return _mismatch(case, firing, gap, observed, expected)


def _mismatch(
    case: Case, firing: Firing, gap: str, observed: tuple[Copy, ...], expected: tuple[Gradient, ...]
) -> Mismatch:
    def told() -> str:
        return f"{shown(observed)}, which is {_tuple(identified(case, firing, observed))}"

    return Mismatch(gap, partial(shown, expected), told)


def calls_differ(answers: Answers) -> Mismatch:
    """How the calls of a legacy hook that are `OTHERWISE` differ from those of a hook on the Node."""
    if answers.wrong is None:
        calls = len(answers.due)
        return Mismatch("fired too often", f"{calls} calls of the hook", f"{calls + len(answers.left)} calls")
    call, event = answers.wrong
    if event is None and not answers.left:
        return Mismatch("not fired", f"a call of the hook in backward {call.backward}", "no call")
    if event is None or not carries(call, event, answers.alike):
        return Mismatch("wrong values", "a call with the gradient of the first output", "none of the calls has it")
    told = event.arguments[0]
    return Mismatch(_form_gap(told, call.forms), " or ".join(map(shown, call.forms)), partial(copy_shown, told))


def _form_gap(told: Copy, forms: Forms) -> str:
    """By what a tuple differs from the form that is most like it."""
    if not isinstance(told, tuple):
        return "wrong arguments"
    alike = [form for form in forms if len(form) == len(told)]
    if not alike:
        return "extra entries" if len(told) > max(map(len, forms)) else "missing entries"
    sides = [(o, e) for o, e in zip(told, alike[0]) if (o is None) != (e is None)]
    if sides:
        return "None instead of a gradient" if sides[0][0] is None else "a gradient instead of None"
    shapes = [getattr(o, "shape", None) != getattr(e, "shape", None) for o, e in zip(told, alike[0])]
    return "wrong shape" if any(shapes) else "wrong values"


def identified(case: Case, firing: Firing, observed: tuple[Copy, ...]) -> tuple[str, ...]:
    """Which gradient each entry really is: ``("bias", "input[0]", "weight transposed")``."""
    if id(observed) not in case.names:
        known = case.expected.known_gradients(firing.call, firing.backward)
        case.names[id(observed)] = tuple("None" if o is None else _name(case, o, known) for o in observed)
    return case.names[id(observed)]


def shown(copies: tuple[Copy, ...] | tuple[Gradient, ...]) -> str:
    """A tuple of gradients for people: shapes, and the numbers of those that are short."""
    return _tuple([_text(copy) for copy in copies])


def copy_shown(copy: Copy) -> str:
    """A copied value for people, in its containers."""
    if isinstance(copy, dict):
        return "{" + ", ".join(f"{key}: {copy_shown(item)}" for key, item in copy.items()) + "}"
    if isinstance(copy, (tuple, list)):
        texts = [copy_shown(item) for item in copy]
        return _tuple(texts) if isinstance(copy, tuple) else f"[{', '.join(texts)}]"
    return _text(copy)


def expected_shown(value: Any) -> str:
    """What the oracle says of a value, for people."""
    return copy_shown(_copied(value))


def _copied(value: Any) -> Copy:
    if isinstance(value, Tensor):
        return value.array
    if isinstance(value, SimpleNamespace):
        return {key: _copied(item) for key, item in vars(value).items()}
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        items = [_copied(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return None if value is None else repr(value)


def _tuple(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _text(copy: Copy) -> str:
    if not isinstance(copy, np.ndarray):
        return "None" if copy is None else str(copy)
    plain = numbers(copy)
    plain = plain.astype(complex if plain.dtype.kind == "c" else float)
    if copy.size <= 6:
        return str(np.round(plain, 6).tolist())
    first = ", ".join(f"{x:.6g}" for x in plain.reshape(-1)[:3])
    return f"[{first}, …] of shape {copy.shape}"


def _gap(case: Case, observed: Copy, name: str, position: int, expected: tuple[Gradient, ...]) -> str:
    if not any(word in name for word in ("unknown", "input[", "output[")):
        return "parameter gradients mixed in"
    others = (e for i, e in enumerate(expected) if e is not None and i != position)
    if isinstance(observed, np.ndarray) and any(case.alike(observed, e) for e in others):
        return "wrong slots"
    wanted = expected[position]
    if wanted is not None and isinstance(observed, np.ndarray) and observed.shape != wanted.shape:
        return "wrong shape"
    return "wrong values"


def _name(case: Case, observed: Copy, known: Mapping[str, Array]) -> str:
    if not isinstance(observed, np.ndarray):
        return "unknown"
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
    return "unknown"
