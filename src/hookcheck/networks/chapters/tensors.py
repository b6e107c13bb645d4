"""What do hooks in the graph receive: on leaves, after accumulation, on the outputs of modules, on the Nodes that made
those, on several tensors at once, and on what a forward saves for backward?

A hook on a leaf is called with its gradient, once for each backward pass that computes it; a post-accumulate-grad hook
finds the new sum in ``.grad``. A hook that a forward hook puts on a module's output is what many libraries use in the
place of a backward hook: it receives the gradient of that very tensor, all of its uses counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hookcheck.contract.clause import NOTHING, PIN, PROMISE, Judgement, Subject, clause
from hookcheck.contract.finding import Finding
from hookcheck.contract.site import ABSENT, ARGUMENT, CALL, CLOSE, COUNT, VALUE, Called, Site
from hookcheck.hooks.kinds import MULTI_GRAD, NODE, NODE_PRE, OUTPUT, POST_ACCUMULATE, RETAINED, SAVED, TENSOR
from hookcheck.networks.case import Case
from hookcheck.oracle.due import TensorCall
from hookcheck.oracle.gradient import Gradient
from hookcheck.probe.observation import Copy

HOOK = "torch.Tensor.register_hook"
POST = "torch.Tensor.register_post_accumulate_grad_hook"
ON_NODE = "torch.autograd.graph.Node.register_hook"
BEFORE_NODE = "torch.autograd.graph.Node.register_prehook"
MULTI = "torch.autograd.graph.register_multi_grad_hook"
SAVING = "torch.autograd.graph.saved_tensors_hooks"


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
    return _on_outputs(case, case.expected.output_calls)


@clause("TN-04", PROMISE, Subject.RUN, "1.7", ON_NODE, of=lambda kind: kind.call == NODE)
def node_hook_gets_the_gradient(case: Case, _: None) -> Judgement:
    """A hook on the Node that made an output of a module is called once for each backward pass that runs the Node, and
    its grad_outputs hold the gradient of the output: all uses of it counted."""
    return _on_outputs(case, (call for call in case.expected.output_calls if not call.leaf))


@clause("TN-05", PROMISE, Subject.RUN, "1.13", BEFORE_NODE, of=lambda kind: kind.call == NODE_PRE)
def node_pre_hook_gets_the_gradient(case: Case, _: None) -> Judgement:
    """A pre-hook on the Node that made an output of a module is called once for each backward pass that runs the Node,
    and its grad_outputs hold the gradient of the output: all uses of it counted."""
    return _on_outputs(case, (call for call in case.expected.output_calls if not call.leaf))


@clause("TN-06", PROMISE, Subject.RUN, "2.0", MULTI, of=lambda kind: kind.call == MULTI_GRAD)
def multi_grad_hook_gets_all_gradients(case: Case, _: None) -> Judgement:
    """A multi-grad hook on all leaves is called once for each backward pass that computes the gradient of any, with
    the gradients of all that have one, and None for the others."""
    if case.observed.raised:
        return NOTHING
    due: dict[int, dict[str, TensorCall]] = {}
    for call in case.expected.leaf_calls:
        due.setdefault(call.backward, {})[call.name] = call
    seen = case.observed.events
    if len(seen) != len(due):
        return Finding(Site(CALL), COUNT, len(due), len(seen))
    for event, calls in zip(seen, due.values()):
        gradients = event.arguments[0]
        assert isinstance(gradients, dict)
        for name, observed in gradients.items():
            expected = calls[name].gradient if name in calls else None
            if not _is(case, observed, expected, name):
                return Finding(Site(VALUE, name, Called("", event.number, "gradients")), CLOSE, expected, observed)
    return None if due else NOTHING


@clause("TN-07", PROMISE, Subject.RUN, "1.7", "torch.Tensor.retain_grad", of=lambda kind: kind.call == RETAINED)
def retained_grad_is_the_sum(case: Case, _: None) -> Judgement:
    """Where an output of a module that is no leaf retains its gradient, ``.grad`` in the end is the sum of its
    gradients over all backward passes, or None where none computes it."""
    if any(not backward.accumulates for backward in case.expected.trace.passes):
        return NOTHING  # only of backward is it said that it fills .grad
    return _on_outputs(case, case.expected.retained)


@clause("TN-08", PROMISE, Subject.RUN, "1.10", SAVING, of=lambda kind: kind.call == SAVED)
def unpacks_what_was_packed(case: Case, _: None) -> Judgement:
    """The hook that unpacks is called with what the one that packs has returned; and where no step of a run is
    recorded for backward, nothing is packed; but a checkpoint saves what it is given."""
    packed: set[Copy] = set()
    for event in case.observed.events:
        (number,) = event.arguments
        assert isinstance(number, str)
        if event.path == "pack":
            packed.add(number)
        elif number not in packed:
            call = Called("unpack", event.number, "tensor")
            return Finding(Site(ARGUMENT, "unpack", call), ABSENT, number, "never packed")
    trace = case.expected.trace
    if packed and not trace.repeats and not any(node.primitive is not None for node in trace.nodes):
        return Finding(Site(CALL, "pack"), COUNT, 0, len(packed))
    return None


def _on_outputs(case: Case, calls: Iterable[TensorCall]) -> Judgement:
    """Whether each output had its hook called with these gradients, in any order: it is not told which call it is of.

    A gradient that is not known speaks for no other of that output.
    """
    if case.observed.raised or case.nodes_unspecified:
        return NOTHING
    named: dict[str, list[TensorCall]] = {}
    for call in calls:
        named.setdefault(call.name, []).append(call)
    unknown = {name for name, due in named.items() if any(call.unknown for call in due)}
    for name in {**named, **case.events}:
        if name in unknown:
            continue
        left = [event.arguments[0] for event in case.events.get(name, ())]
        due = named.get(name, [])
        if case.expected.trace.repeats and case.kind.call == RETAINED:
            left = left[: len(due)]  # what backward computes again has outputs of its own, and gets no gradients
        if len(left) != len(due):
            return Finding(Site(CALL, name), COUNT, len(due), len(left))
        for number, call in enumerate(due):
            place = next((i for i, seen in enumerate(left) if _alike(case, seen, call.gradient)), None)
            if place is None:
                site = Site(VALUE, name, Called(name, number, "gradient"))
                return Finding(site, ABSENT, call.gradient, tuple(left))
            left.pop(place)
    return None if named else NOTHING


def _alike(case: Case, observed: Copy, expected: Gradient) -> bool:
    if expected is None or not isinstance(observed, np.ndarray):
        return expected is None and observed is None
    return case.alike(observed, expected)


def _is(case: Case, observed: Copy, expected: Gradient, leaf: str) -> bool:
    """Whether a leaf's gradient is as expected, its dtype that of the leaf."""
    if expected is None:
        return observed is None
    return case.close(observed, expected, case.expected.trace.leaves[leaf].dtype)


def _in_turn(case: Case, calls: Sequence[TensorCall]) -> Judgement:
    """Whether each leaf's hook was called with these gradients, one after the other."""
    if case.observed.raised:
        return NOTHING
    names = dict.fromkeys([*(call.name for call in calls), *case.events])
    for name in names:
        due = [call.gradient for call in calls if call.name == name]
        seen = [event.arguments[0] for event in case.events.get(name, ())]
        if len(seen) != len(due):
            return Finding(Site(CALL, name), COUNT, len(due), len(seen))
        for number, (observed, expected) in enumerate(zip(seen, due)):
            if not _is(case, observed, expected, name):
                return Finding(Site(VALUE, name, Called(name, number, "gradient")), CLOSE, expected, observed)
    return None if names else NOTHING
