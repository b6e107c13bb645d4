"""When does a module backward hook fire, how often, and after what?

``Module.register_full_backward_hook`` gives three rules. Ordinarily a hook fires when the gradients with respect to the
inputs of its module are computed. If no input requires grad, it fires when those with respect to the outputs are. If no
output requires grad either, it never fires. So it fires once for each forward use and backward pass, in an order that
the graph allows, and not at all where grad mode is off. The legacy hook advertises the same, and is held to it; and it
is held to what it really is, a hook on the grad_fn of the first output.
"""

from __future__ import annotations

from hookcheck.contract.clause import NOT_JUDGED, NOTHING, PIN, PROMISE, Judgement, Subject, clause
from hookcheck.contract.finding import Finding
from hookcheck.contract.site import CALL, COUNT, ORDER, PROCESS, RAISES, Called, Site
from hookcheck.hooks.kinds import BACKWARD_PRE, HookKind
from hookcheck.networks import legacy
from hookcheck.networks.case import Case, Pair
from hookcheck.networks.gradients import calls_differ, lacks_the_output
from hookcheck.oracle.graph import CallTrace

MODULE = "torch.nn.Module.register_full_backward_hook"
PRE = "torch.nn.Module.register_full_backward_pre_hook"
IN_PLACE = "modified inplace"
"""What torch says of a write to a view that an identity gave, or to what it is a view of: one 'is being', one 'has
been'. Source: ``handle_view_on_rebase`` in torch/csrc/autograd/variable.cpp."""
DETACHED = "Can't detach views in-place"
"""What it says where one is detached in place. Source: ``detach_`` in torch/csrc/autograd/VariableTypeManual.cpp."""


def _backwards(kind: HookKind) -> bool:
    """Module backward hooks and pre-hooks."""
    return kind.backward


def _pre_hooks(kind: HookKind) -> bool:
    return kind.call == BACKWARD_PRE


def _full(kind: HookKind) -> bool:
    return kind.backward and kind.variant == "full"


def _legacy(kind: HookKind) -> bool:
    return kind.variant == "legacy"


def _fired(case: Case, pair: Pair, early: bool) -> Judgement:
    if pair.firing.early is not early or not pair.firing.certain:
        return NOTHING
    if pair.event is None and case.observed.raised:
        return _raised(case)
    if pair.event is None:
        return Finding(Site(CALL, f"backward {pair.firing.backward}"), COUNT, 1, 0)
    return None


@clause("BW-02", PROMISE, Subject.FIRING, since="1.8", source=f"{MODULE}, firing rule 1")
def fires_on_inputs(case: Case, pair: Pair) -> Judgement:
    """The hook fires when the gradients with respect to the module's inputs are computed."""
    return _fired(case, pair, early=False)


@clause("BW-03", PROMISE, Subject.FIRING, since="1.9", source=f"{MODULE}, firing rule 2; pytorch#56693")
def fires_on_outputs(case: Case, pair: Pair) -> Judgement:
    """If no input of the module requires grad, the hook fires when the gradients with respect to its outputs are
    computed."""
    return _fired(case, pair, early=True)


@clause("BW-04", PROMISE, Subject.CALL, "1.8", f"{MODULE}, firing rule 3", of=_backwards)
def never_fires(case: Case, call: CallTrace) -> Judgement:
    """If no output of the module requires grad, the hook never fires."""
    if any(t is not None and t.requires_grad for t in call.outputs_inside) or call.path in case.due:
        return NOTHING
    return _silent(case, call)


@clause("BN-01", PROMISE, Subject.FIRING, "2.0", f"{PRE}, 'every time the gradients … are computed'", of=_pre_hooks)
def pre_hook_fires(case: Case, pair: Pair) -> Judgement:
    """A backward pre-hook fires when the gradients of a module are computed, from those of its outputs."""
    return _fired(case, pair, pair.firing.early)


@clause("BW-05", PROMISE, Subject.CALL, "1.8", f"{MODULE}, 'every time the gradients … are computed'", of=_backwards)
def fires_once_each_time(case: Case, call: CallTrace) -> Judgement:
    """The hook fires once for each forward use of the module and each backward pass that meets its condition."""
    due = len(case.due.get(call.path, ()))
    fired = len(case.events.get(call.path, ()))
    if call.number or not fired or case.observed.raised or not any(t and t.requires_grad for t in call.outputs_inside):
        return NOTHING
    certain = sum(pair.firing.certain for pair in case.pairs if pair.firing.call.path == call.path)
    if certain <= fired <= due:
        return None
    return Finding(Site(CALL), COUNT, due, fired)


@clause("NG-01", PROMISE, Subject.RUN, "1.10", "pytorch#65335; firing rule 3 under torch.no_grad", of=_backwards)
def silent_without_grad_mode(case: Case, _: None) -> Judgement:
    """A module that is called under no_grad or inference_mode computes as if it had no hook: nothing raises, and the
    hook is not called."""
    silent = [c for c in case.expected.trace.calls if c.mode != "grad" and c.path not in case.due]
    if not silent:
        return NOTHING
    if case.observed.raised:
        return NOTHING if _refused(case) else _raised(case)
    return next((m for m in (_silent(case, call) for call in silent) if m is not None), None)


@clause("OR-01", PROMISE, Subject.RUN, "1.8", "notes on autograd, 'Backward Hooks execution'", of=_backwards)
def ordered_by_the_graph(case: Case, _: None) -> Judgement:
    """Hooks fire in an order that the graph allows: a consumer before what it consumes, an enclosing module after the
    modules that its input gradients pass through."""
    happened = [pair for pair in case.pairs if pair.event is not None]
    place = {id(event): i for i, event in enumerate(case.observed.events)}
    happened.sort(key=lambda pair: place[id(pair.event)])
    if len(happened) < 2:
        return NOTHING
    for i, pair in enumerate(happened):
        for later in happened[i + 1 :]:
            if _must_precede(later, pair):
                before, after = later.firing.call.subject, pair.firing.call.subject
                return Finding(Site(CALL), ORDER, [before, after], [after, before])
    return None


@clause("BW-12", PROMISE, Subject.RUN, "1.8", f"{MODULE}, warning on in-place changes", of=_full)
def forbids_writing_in_place(case: Case, _: None) -> Judgement:
    """Modifying a module's input or output in place under a full backward hook raises an error."""
    if not case.forbidden:
        return NOTHING
    if _refused(case):
        return None
    expected = f"RuntimeError that says {IN_PLACE!r} where a module's input or output is written to"
    return Finding(Site(PROCESS), RAISES, expected, case.observed.raised)


def _refused(case: Case) -> bool:
    """Whether the run ends as a write in place that full hooks forbid must end it."""
    raised = case.observed.raised
    said = raised.text if raised is not None and raised.type == "RuntimeError" else ""
    return case.forbidden and (IN_PLACE in said or DETACHED in said)


@clause("P2-11", PIN, Subject.CALL, "1.7", "design note 'nn.Module hooks': legacy hooks", of=_legacy)
def legacy_is_a_node_hook(case: Case, call: CallTrace) -> Judgement:
    """The legacy hook is a hook on the grad_fn of the first output tensor: it fires whenever that Node runs, and
    grad_output holds the whole gradient of that tensor."""
    due = case.of_first_output.get(call.path, [])
    events = case.events.get(call.path, [])
    if call.number or case.observed.raised or case.nodes_unspecified:
        return NOTHING
    known = [gradient for gradient in due if gradient is not None]
    if len(known) < len(due):
        return NOTHING  # whether the outputs of a step share a Node is torch's own affair
    if len(events) != len(due):
        return Finding(Site(CALL), COUNT, len(due), len(events))
    left = list(events)
    for gradient in known:
        carrier = next((event for event in left if case.carries_output(event, gradient)), None)
        if carrier is None:
            return lacks_the_output(gradient, left)
        left.remove(carrier)
    return None if due else NOTHING


@clause("P2-12", PIN, Subject.CALL, "1.7", "tools/autograd/derivatives.yaml; ATen/native", of=_legacy)
def legacy_hands_on_what_the_node_does(case: Case, call: CallTrace) -> Judgement:
    """The legacy hook receives as grad_input what the last Node of the module hands on, entry by entry, whatever the
    module's own arguments are."""
    answers = case.as_nodes[call.path]
    if call.number or not (answers.due or answers.left):
        return NOTHING
    if answers.word == legacy.NOT_JUDGED:
        return NOTHING if case.observed.raised else NOT_JUDGED
    return None if answers.word == legacy.AS_THE_NODE else calls_differ(answers)


def _raised(case: Case) -> Judgement:
    if case.plain.raised:
        return NOTHING  # it does, and AG-01 tells what torch does wrong
    return Finding(Site(PROCESS), RAISES, "the run ends as it does without hooks", case.observed.raised)


def _silent(case: Case, call: CallTrace) -> Judgement:
    fired = len(case.events.get(call.path, ()))
    return Finding(Site(CALL, call=Called(call.path)), COUNT, 0, fired) if fired else None


def _must_precede(first: Pair, second: Pair) -> bool:
    a, b = first.firing, second.firing
    return a.backward < b.backward or (a.backward == b.backward and bool(b.earlier >> a.node & 1))
