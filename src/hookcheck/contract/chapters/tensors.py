"""What do hooks on tensors receive: on leaves, after accumulation, and on the outputs of modules?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hookcheck.contract.case import Case
from hookcheck.contract.clause import NOTHING, PIN, PROMISE, Judgement, Mismatch, Subject, clause
from hookcheck.contract.gradients import shown
from hookcheck.oracle.expected import TensorCall
from hookcheck.probe.kinds import OUTPUT, POST_ACCUMULATE, TENSOR

HOOK = "torch.Tensor.register_hook"
POST = "torch.Tensor.register_post_accumulate_grad_hook"


@clause("TN-01", PROMISE, Subject.RUN, "1.7", HOOK, of=lambda kind: kind.call == TENSOR)
def leaf_hook_gets_the_gradient(case: Case, _: None) -> Judgement:
    """A hook on a leaf is called once for each backward pass that computes the leaf's gradient, with the sum over all
    of its uses."""
    return _in_turn(case, case.expected.leaf_calls)


@clause("TN-02", PROMISE, Subject.RUN, "2.1", POST, of=lambda kind: kind.call == POST_ACCUMULATE)
def post_accumulate_hook_sees_grad(case: Case, _: None) -> Judgement:
    """A post-accumulate-grad hook is called once for each backward pass that changes the leaf's ``.grad``, and finds
    the new sum there."""
    return _in_turn(case, case.expected.accumulations)


@clause("TN-03", PIN, Subject.RUN, "1.7", f"{HOOK}, as libraries use it", of=lambda kind: kind.call == OUTPUT)
def output_hook_gets_the_gradient(case: Case, _: None) -> Judgement:
    """A Tensor hook that a forward hook puts on an output is called once for each backward pass that runs the step
    which made it, with the gradient of the tensor: all uses of it counted."""
    if case.observed.raised or case.winding:
        return NOTHING
    named: dict[str, list[TensorCall]] = {}
    for call in case.expected.output_calls:
        named.setdefault(call.name, []).append(call)
    unknown = {name for name, calls in named.items() if any(call.gradient is None for call in calls)}
    unknown |= {name for name in case.events if name.rpartition("[")[0] in case.overwritten}
    for name in {**named, **case.events}:
        if name in unknown or name.rpartition("[")[0] in case.overwritten:
            continue
        left = [event.arguments[0] for event in case.events.get(name, ())]
        due = named.get(name, [])
        if len(left) != len(due):
            gap = "not fired" if len(left) < len(due) else "fired too often"
            return Mismatch(gap, f"{len(due)} calls for {name}", f"{len(left)} calls")
        for call in due:
            assert call.gradient is not None
            arrays = [(i, seen) for i, seen in enumerate(left) if isinstance(seen, np.ndarray)]
            place = next((i for i, seen in arrays if case.alike(seen, call.gradient)), None)
            if place is None:
                return Mismatch("wrong values", f"{name}: {shown((call.gradient,))}", shown(tuple(left)))
            left.pop(place)
    return None if named else NOTHING


def _in_turn(case: Case, calls: Sequence[TensorCall]) -> Judgement:
    """Whether each leaf's hook was called with these gradients, one after the other."""
    if case.observed.raised:
        return NOTHING
    names = dict.fromkeys([*(call.name for call in calls), *case.events])
    for name in names:
        due = [call.gradient for call in calls if call.name == name]
        seen = [event.arguments[0] for event in case.events.get(name, ())]
        if len(seen) != len(due):
            gap = "not fired" if len(seen) < len(due) else "fired too often"
            return Mismatch(gap, f"{len(due)} calls for {name}", f"{len(seen)} calls")
        dtype = case.expected.trace.leaves[name].dtype
        for observed, expected in zip(seen, due):
            if expected is None or not case.close(observed, expected, dtype):
                return Mismatch("wrong values", f"{name}: {shown((expected,))}", shown((observed,)))
    return None if names else NOTHING
