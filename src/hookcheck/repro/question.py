"""What a script asks of torch: where it looks, by which relation it judges, and what is right there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from hookcheck.contract.clause import Subject, clause_named
from hookcheck.contract.finding import Finding
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import MULTI_GRAD, NODE, NODE_PRE, OUTPUT, RETAINED
from hookcheck.networks.case import Case, Pair
from hookcheck.oracle.graph import Tensor, newest
from hookcheck.probe.observation import numbers
from hookcheck.repro.sighting import Sighting
from hookcheck.topology.values import parameter_shapes

CALLS, VALUE, ERROR, WARNINGS, ALIVE = "calls", "value", "error", "warnings", "alive"
"""Where a script looks: at the calls of a hook, at a value after the run, at what it raises, warns of, or leaves."""

COUNT, LENGTH, NONE, CLOSE, SAME, ORDER, EQUAL, RAISES = (
    "count",
    "length",
    "None",
    "close",
    "same",
    "order",
    "equal",
    "raises",
)
"""By what it judges: how many calls or entries, None or not, numbers, as without hooks, order, an error or none."""

NUMBERS = ("wrong values", "parameter gradients mixed in", "wrong slots", "wrong shape")
STATES = ("None instead of a gradient", "a gradient instead of None")
ENTRIES = ("missing entries", "extra entries")
CALLED = ("not fired", "fired too often")


@dataclass(frozen=True)
class Question:
    """``place`` is one of the words above, ``relation`` another.

    Of calls, ``path`` is the module (or leaf, or output) whose hook is called, ``event`` the number of the call,
    ``argument`` the hook's argument that matters, and ``entry`` the place in it (None: all of it). Of a value ``path``
    is the expression that gives it. ``expected`` is a number, a flag, an array with its ``dtype``, or a list, and
    ``observed`` what torch gave in the place of an array.
    """

    place: str
    relation: str
    path: str = ""
    argument: str = ""
    event: int = 0
    entry: int | None = None
    expected: Any = None
    dtype: str = ""
    observed: Any = None


def question(sighting: Sighting) -> Question:
    """What a script asks to show that sighting.

    Raises:
        HookcheckError: there is no way to ask it.
    """
    case, gap, finding = sighting.case, sighting.symptom.gap, sighting.finding
    clause = clause_named(sighting.symptom.clause)
    if gap == "raised":
        return Question(ERROR, RAISES)
    if gap == "not raised":
        return Question(ERROR, RAISES, expected="RuntimeError")
    if gap == "new warning":
        return Question(WARNINGS, COUNT, expected=0, argument=sighting.subject[1])
    if gap == "kept alive":
        return Question(ALIVE, SAME, path=expression(case, finding.observed[0]))
    if gap == "wrong order" and clause.subject is Subject.RUN:
        return Question(CALLS, ORDER, expected=[name.partition("#")[0] for name in finding.expected])
    if clause.subject is Subject.FIRING:
        return _of_a_firing(case, sighting.subject, clause.id, gap)
    if clause.subject is Subject.CALL:
        due = len(case.due.get(sighting.subject.path, ()))
        if gap in CALLED:
            of_node = clause.id.startswith("P2")
            due = len(case.of_first_output.get(sighting.subject.path, ())) if of_node else due
            return Question(CALLS, COUNT, path=sighting.subject.path, expected=due)
    if clause.subject is Subject.RUN:
        listed = gap in CALLED and isinstance(finding.expected, list)
        return _of_calls(finding) if listed else _of_a_run(case, clause.id, finding)
    raise HookcheckError(f"no script can be written yet for {clause.id} where there is {gap}")


def _of_calls(finding: Finding) -> Question:
    """How often the first module is called that is called more or less often than it should be."""
    expected, observed = ([name.partition("#")[0] for name in side] for side in (finding.expected, finding.observed))
    name = next(name for name in (*expected, *observed) if expected.count(name) != observed.count(name))
    return Question(CALLS, COUNT, path="" if name == "net" else name, expected=expected.count(name))


def _of_a_firing(case: Case, pair: Pair, clause: str, gap: str) -> Question:
    path = pair.firing.call.path
    if gap in CALLED:
        return Question(CALLS, COUNT, path=path, expected=sum(f.certain for f in case.due[path]))
    event = case.events[path].index(pair.event) if pair.event is not None else 0
    argument = "grad_output" if clause.startswith("GO") else "grad_input"
    expected, tensors, unsure = pair.firing.side(argument)
    observed = case.side(pair, argument)
    if clause == "BW-08":
        argument = next(name for name in case.sides if _filled(case, pair, name) is not None)
        return Question(CALLS, NONE, path, argument, event, _filled(case, pair, argument), True)
    assert isinstance(observed, tuple)
    if gap in ENTRIES:
        return Question(CALLS, LENGTH, path, argument, event, None, len(expected))
    sides = [(i, o, e, t) for i, (o, e, t) in enumerate(zip(observed, expected, tensors))]
    if gap in STATES:
        entry = next(i for i, o, e, _ in sides if (o is None) != (e is None) and i not in unsure)
        return Question(CALLS, NONE, path, argument, event, entry, expected[entry] is None)
    both = [(i, o, e, t) for i, o, e, t in sides if o is not None and e is not None and t is not None]
    entry, seen, array, dtype = next((i, o, e, t.dtype) for i, o, e, t in both if not case.close(o, e, t.dtype))
    return Question(CALLS, CLOSE, path, argument, event, entry, array, dtype, _plain(seen))


def _plain(copy: Any) -> Any:
    return numbers(copy) if isinstance(copy, np.ndarray) else copy


def _filled(case: Case, pair: Pair, name: str) -> int | None:
    """The first place of an argument that holds a gradient of what is no tensor."""
    observed, tensors = case.side(pair, name), pair.firing.side(name)[1]
    sides = zip(observed, tensors) if isinstance(observed, tuple) else ()
    return next((i for i, (o, t) in enumerate(sides) if t is None and o is not None), None)


def _of_a_run(case: Case, clause: str, finding: Finding) -> Question:
    name, gap = finding.site.name, finding.gap
    if clause.startswith("TN"):
        return _of_tensors(case, finding)
    if clause == "NG-01":
        path = next(c.path for c in case.expected.trace.calls if c.mode != "grad" and case.events.get(c.path))
        return Question(CALLS, COUNT, path=path, expected=0)
    if clause == "OB-06":
        return Question(VALUE, SAME, path="torch.random.get_rng_state()")
    if clause == "GR-01":
        path = next(event.path for event in case.observed.events if event.requires_grad)
        return Question(CALLS, EQUAL, path=path, argument="requires_grad", expected=False)
    if clause == "AG-01":
        leaf = name[: -len(".grad")]
        array = case.expected.leaf_gradients.get(leaf)
        dtype = case.expected.trace.leaves[leaf].dtype
        if array is None:
            return Question(VALUE, NONE, path=expression(case, name), expected=True)
        return Question(
            VALUE,
            CLOSE,
            path=expression(case, name),
            expected=array,
            dtype=dtype,
            observed=_plain(case.observed.gradients[leaf]),
        )
    if clause == "AG-02":
        return _of_a_value(case, name)
    if clause in ("OB-02", "OB-03", "OB-04"):
        return Question(VALUE, NONE if gap in STATES else SAME, path=expression(case, name), expected=None)
    if clause == "OB-07":
        return Question(VALUE, SAME, path=f"{expression(case, name)}{_ATTRIBUTES[str(finding.expected).split()[0]]}")
    raise HookcheckError(f"no script can be written yet for {clause} where there is {gap}")


_ATTRIBUTES = {
    "strides": ".stride()", "version": "._version", "view": "._is_view()", "leaf": ".is_leaf",
    "requires_grad": ".requires_grad", "object": ".data_ptr()",
}  # fmt: skip


def _of_a_value(case: Case, name: str) -> Question:
    """The first tensor of a value that is not what the formulas give."""
    wanted = newest(case.expected.trace.names[name])
    for path, observed, expected in _leaves(name, case.observed.values[name], wanted):
        if isinstance(expected, Tensor) and not case.agrees(observed, expected):
            if not isinstance(observed, np.ndarray):
                return Question(VALUE, NONE, path=expression(case, path), expected=False)
            return Question(
                VALUE,
                CLOSE,
                path=expression(case, path),
                expected=expected.array,
                dtype=expected.dtype,
                observed=_plain(observed),
            )
        if expected is None and observed is not None:
            return Question(VALUE, NONE, path=expression(case, path), expected=True)
    raise HookcheckError(f"no script can be written yet where {name} is of another type")


def _leaves(name: str, observed: Any, expected: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(expected, (tuple, list, dict)):
        keys = list(expected) if isinstance(expected, dict) else range(len(expected))
        seen = observed if isinstance(observed, (tuple, list, dict)) else {}
        return [
            leaf
            for key in keys
            if (key in seen if isinstance(seen, dict) else key < len(seen))
            for leaf in _leaves(f"{name}[{key}]", seen[key], expected[key])
        ]
    return [(name, observed, expected)]


def _of_tensors(case: Case, finding: Finding) -> Question:
    """Of a hook on a leaf, an output or a Node: how often it is called, and with which gradient."""
    name = finding.site.name
    if finding.gap in CALLED:
        return Question(CALLS, COUNT, path=name, expected=finding.expected)
    if case.kind.call == MULTI_GRAD:
        return _of_all_leaves(case, name)
    on_outputs = case.kind.call in (OUTPUT, NODE, NODE_PRE, RETAINED)
    calls = case.expected.output_calls if on_outputs else case.expected.leaf_calls
    calls = case.expected.retained if case.kind.call == RETAINED else calls
    calls = case.expected.accumulations if case.kind.call == "post_accumulate" else calls
    due = [call.gradient for call in calls if call.name == name]
    seen = [event.arguments[0] for event in case.events.get(name, ())]
    dtypes = {key: leaf.dtype for key, leaf in case.expected.trace.leaves.items()}
    dtype = dtypes.get(name, case.expected.topology.dtype)
    for i, (wanted, got) in enumerate(zip(due, seen)):
        if wanted is not None and not (isinstance(got, np.ndarray) and case.alike(got, wanted)):
            return Question(CALLS, CLOSE, name, "", i, None, wanted, dtype, _plain(got))
    raise HookcheckError(f"no script can be written yet where {name} gets a gradient and should get None")


def _of_all_leaves(case: Case, name: str) -> Question:
    """Of a hook on all leaves: which of them gets what it should not."""
    due: dict[int, dict[str, Any]] = {}
    for call in case.expected.leaf_calls:
        due.setdefault(call.backward, {})[call.name] = call.gradient
    leaf = case.expected.trace.leaves[name]
    place = [n for n, other in case.expected.trace.leaves.items() if other.requires_grad].index(name)
    for i, (event, wanted) in enumerate(zip(case.observed.events, due.values())):
        told: Any = event.arguments[0]
        seen, right = told[name], wanted.get(name)
        if (seen is None) != (right is None):
            return Question(CALLS, NONE, argument=name, event=i, entry=place, expected=right is None)
        if right is not None and not case.close(seen, right, leaf.dtype):
            return Question(CALLS, CLOSE, "", name, i, place, right, leaf.dtype, _plain(seen))
    raise HookcheckError(f"no script can be written yet where hooks on all leaves find {name} so")


def expression(case: Case, name: str) -> str:
    """The expression that gives a leaf, its ``.grad`` or a value, by the name that observations have for it."""
    base, dot, rest = name.partition(".grad")
    if base in parameter_shapes(case.topology):
        base = f"net.{base}"
    base = re.sub(r"\.(\d+)", r"[\1]", base)
    return re.sub(r"\[([^\W\d]\w*)\]", r"['\1']", base) + dot + rest
