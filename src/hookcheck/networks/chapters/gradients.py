"""What does a module backward hook receive? ``hook(module, grad_input, grad_output)``, position by position.

Both are tuples: one entry for each positional argument and for each output, None where there is no Tensor or no
gradient. ``grad_input`` is the gradient along paths through this very call, ``grad_output`` the total over all that
consume the output. Every number is held against the oracle's. One clause speaks of hooks on tensors as well: whether
the gradients that a hook is given require grad.
"""

from __future__ import annotations

from hookcheck.contract.clause import NOTHING, PROMISE, Judgement, Subject, clause
from hookcheck.contract.finding import Finding
from hookcheck.contract.site import ARGUMENT, EQUAL, NONE, VALUE, Called, Site
from hookcheck.hooks.kinds import BACKWARD_PRE, MULTI_GRAD, NODE, NODE_PRE, OUTPUT, POST_ACCUMULATE, TENSOR, HookKind
from hookcheck.networks.case import Case, Pair
from hookcheck.networks.gradients import lengths_differ, named, states_differ, values_differ
from hookcheck.oracle.graph import Tensor
from hookcheck.probe.observation import Copy, Event

MODULE = "torch.nn.Module.register_full_backward_hook"
PRE = "torch.nn.Module.register_full_backward_pre_hook"
CREATE_GRAPH = "torch.autograd.backward, 'create_graph'; torch.autograd.grad, 'create_graph'"
OUTPUTS = f"{MODULE}, 'gradients with respect to the … outputs'"


def _backwards(kind: HookKind) -> bool:
    """Backward hooks and pre-hooks: both are given the gradients of outputs."""
    return kind.backward


def takes_gradients(kind: HookKind) -> bool:
    """Hooks that are called with gradients, in backward."""
    return kind.backward or kind.call in (TENSOR, POST_ACCUMULATE, MULTI_GRAD, OUTPUT, NODE, NODE_PRE)


@clause("BW-01", PROMISE, Subject.EVENT, since="1.8", source=f"{MODULE}, signature")
def called_with_two_tuples(case: Case, event: Event) -> Judgement:
    """The hook is called as hook(module, grad_input, grad_output) with the module that it was registered on; both
    gradients are tuples, even for one tensor."""
    return _signature(event, 2)


def _signature(event: Event, count: int) -> Judgement:
    if event.given == event.path and len(event.arguments) == count and all(type(a) is tuple for a in event.arguments):
        return None
    types = (type(argument).__name__ for argument in event.arguments)
    return Finding(Site(ARGUMENT), EQUAL, (named(event.path), *["tuple"] * count), (named(event.given), *types))


@clause("BN-02", PROMISE, Subject.EVENT, "2.0", f"{PRE}, signature", of=lambda kind: kind.call == BACKWARD_PRE)
def pre_hook_called_with_a_tuple(case: Case, event: Event) -> Judgement:
    """A backward pre-hook is called as hook(module, grad_output) with the module that it was registered on;
    grad_output is a tuple, even for one tensor."""
    return _signature(event, 1)


@clause("BW-07", PROMISE, Subject.FIRING, since="1.8", source=f"{MODULE}, 'inputs given as positional arguments'")
def one_entry_per_argument(case: Case, pair: Pair) -> Judgement:
    """grad_input has one entry for each positional argument; keyword arguments never appear."""
    return lengths_differ(case, pair.firing, case.side(pair, "grad_input"), pair.firing.grad_input)


@clause("BW-08", PROMISE, Subject.FIRING, "1.8", f"{MODULE}, 'None for all non-Tensor arguments'", of=_backwards)
def none_for_what_is_no_tensor(case: Case, pair: Pair) -> Judgement:
    """Positions that hold no Tensor are None in grad_input and grad_output, so positions stay aligned."""
    judged = [_none_at(case.side(pair, name), pair.firing.side(name)[1], name) for name in case.sides]
    wrong = next((judgement for judgement in judged if isinstance(judgement, Finding)), None)
    return NOTHING if all(judgement is NOTHING for judgement in judged) else wrong


def _none_at(observed: Copy, tensors: tuple[Tensor | None, ...], name: str) -> Judgement:
    if not isinstance(observed, tuple) or all(t is not None for t in tensors):
        return NOTHING
    filled = [i for i, (o, t) in enumerate(zip(observed, tensors)) if t is None and o is not None]
    if not filled:
        return None
    return Finding(Site(VALUE, f"{name}[{filled[0]}]"), NONE, None, observed[filled[0]])


@clause("GI-01", PROMISE, Subject.FIRING, since="1.8", source=f"{MODULE}, 'gradients with respect to the inputs'")
def grad_input_values(case: Case, pair: Pair) -> Judgement:
    """grad_input[i] is the gradient with respect to the i-th positional argument, along paths through this call
    only."""
    return values_differ(case, pair.firing, case.side(pair, "grad_input"), pair.firing.grad_input)


@clause("GI-02", PROMISE, Subject.FIRING, since="1.8", source=f"{MODULE}; notes on autograd, 'Special hooks'")
def grad_input_states(case: Case, pair: Pair) -> Judgement:
    """grad_input[i] is None where no gradient with respect to that argument is computed, and a tensor where one is."""
    return states_differ(case, pair.firing, case.side(pair, "grad_input"), pair.firing.grad_input)


@clause("GO-01", PROMISE, Subject.FIRING, "1.8", OUTPUTS, of=_backwards)
def grad_output_values(case: Case, pair: Pair) -> Judgement:
    """grad_output[j] is the gradient with respect to the j-th output, the total over all that consume that output."""
    return values_differ(case, pair.firing, case.side(pair, "grad_output"), pair.firing.grad_output)


@clause("GO-02", PROMISE, Subject.FIRING, "1.8", f"{MODULE}; design note, 'intermediate loss'", of=_backwards)
def grad_output_states(case: Case, pair: Pair) -> Judgement:
    """grad_output[j] is None where backward computes no gradient with respect to that output, and a tensor where it
    does."""
    return states_differ(case, pair.firing, case.side(pair, "grad_output"), pair.firing.grad_output)


@clause("GO-03", PROMISE, Subject.FIRING, "1.8", f"{MODULE}, signature", of=_backwards)
def one_entry_per_output(case: Case, pair: Pair) -> Judgement:
    """grad_output has one entry for each output."""
    return lengths_differ(case, pair.firing, case.side(pair, "grad_output"), pair.firing.grad_output)


@clause("GR-01", PROMISE, Subject.RUN, "1.7", CREATE_GRAPH, of=takes_gradients)
def gradients_require_no_grad(case: Case, _: None) -> Judgement:
    """The gradients that a hook is given require grad only where a backward pass is told to create a graph."""
    if case.expected.trace.recorded or not case.observed.events:
        return NOTHING
    asking = next((event for event in case.observed.events if event.requires_grad), None)
    if asking is None:
        return None
    call = Called(asking.path, asking.number, "requires_grad")
    return Finding(Site(ARGUMENT, f"{named(asking.path)}: requires_grad", call), EQUAL, False, True)
