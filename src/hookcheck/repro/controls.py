"""What may pass where the experiment fails: no hook, another kind or value, or a network that is one step away."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from hookcheck.hooks.kinds import BACKWARD, KINDS
from hookcheck.networks.case import Case
from hookcheck.oracle.graph import Tensor
from hookcheck.oracle.trace import trace
from hookcheck.probe.run import lacking
from hookcheck.repro.due import Due, due, due_of_leaf, dues_of_call
from hookcheck.repro.grown import by_another_layer, grown
from hookcheck.repro.hooking import taken
from hookcheck.repro.network import ONES, network
from hookcheck.repro.overriding import overriding
from hookcheck.repro.question import ALIVE, CALLS, ERROR, RAISED, VALUE, WARNINGS, Question, expression
from hookcheck.repro.reduce import INVALID, one_step_away
from hookcheck.repro.script import Control
from hookcheck.repro.sighting import Sighting
from hookcheck.topology.model import Backward, Call, Grad, Statement, Topology, statements
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

NEIGHBOURS = 200
"""So many networks that have less are tried as a control."""


def controls(sighting: Sighting, asked: Question) -> Iterator[Control]:
    """What may pass, the plainest first; at last nothing at all."""
    case = sighting.case
    if asked.compared:
        yield Control(hooked=True)
        return
    compared = asked.place in (ALIVE, WARNINGS)
    if compared or (asked.place in (ERROR, VALUE) and not sighting.symptom.unhooked):
        yield Control(hooked=True, due=_without_hooks(case, asked))
    if case.kind.call == BACKWARD and case.kind.variant == "legacy":
        full = KINDS["full_backward" if case.kind.scope == "module" else "global_full_backward"]
        if not lacking(full.name) and asked.place == CALLS:
            yield Control(register=full.register)
    if asked.place == CALLS and asked.index and asked.argument in ("grad_input", "grad_output"):
        leaves = [i.name for i in case.topology.inputs if i.requires_grad]
        yield from (Control(value=f"{leaf}.grad") for leaf in leaves)
        of_leaves = ((leaf, due_of_leaf(case, leaf, asked, hooked=True)) for leaf in leaves)
        yield from (Control(value=f"{leaf}.grad", due=of_leaf) for leaf, of_leaf in of_leaves if of_leaf)
    yield from (Control(topology=near) for near in _beside(case.topology))
    for near in _beside(case.topology):
        other = due(near, sighting, asked)
        if other:
            yield Control(topology=near, due=other)
    for event in range(asked.event):  # a call before
        for of_call in dues_of_call(event, sighting, asked):
            yield Control(value=taken(case.kind, of_call.asked), due=of_call)
    yield Control()


def _without_hooks(case: Case, asked: Question) -> Due | None:
    """What is due without hooks, where that is something else: no error, or a gradient that no hook acts on."""
    if asked.place == ERROR and asked.expected:
        return Due(RAISED, "")
    if asked.place != VALUE or case.kind.observes:
        return None
    leaves = [name for name in case.expected.leaf_gradients if expression(case, f"{name}.grad") == asked.path]
    return due_of_leaf(case, leaves[0], asked, hooked=False) if leaves else None


def _beside(topology: Topology) -> Iterator[Topology]:
    """Networks that are one step away and that one script can have beside the network, the plainest first: a class of
    the control's own is a last resort."""
    less = [*islice(_near(topology), NEIGHBOURS)]
    for others, own_class in ((less, False), (grown(topology), False), (grown(topology), True), (less, True)):
        yield from _fitting(topology, others, own_class)
    yield from _fitting(topology, by_another_layer(topology), own_class=False)


def _fitting(topology: Topology, others: Iterable[Topology], own_class: bool) -> Iterator[Topology]:
    """Those of the others that have no class but the network's, or one of their own."""
    classes, acting = network(topology, ONES, "").classes, _acts(topology)
    for other in others:
        try:
            its_own = [text for text in network(other, ONES, "").classes if text not in classes]
        except INVALID:
            continue
        possible = overriding(classes, its_own) is not None if own_class else not its_own
        if possible and _acts(other) == acting:
            yield other


def _near(topology: Topology) -> Iterator[Topology]:
    """Networks that differ in one step, those first whose backward starts at the output, or another tensor of it."""
    outputs: list[Ref] = []
    with contextlib.suppress(*INVALID):
        outputs = [Ref("y", path) for path in _tensors(trace(topology, values(topology)).names.get("y"))]
    for change in (_from, _backward_from, _again_from):
        mains = (
            main for i in range(len(topology.main)) for output in outputs for main in change(topology.main, i, output)
        )
        yield from (replace(topology, main=main) for main in mains if main != topology.main)
    yield from one_step_away(topology)


Main = tuple[Statement, ...]


def _from(main: Main, i: int, output: Ref) -> Iterator[Main]:
    """The backward at ``i`` starts at another tensor."""
    statement = main[i]
    if isinstance(statement, (Backward, Grad)):
        changed = replace(statement, outputs=(output,), cotangents=statement.cotangents[:1])
        yield (*main[:i], changed, *main[i + 1 :])


def _backward_from(main: Main, i: int, output: Ref) -> Iterator[Main]:
    """No gradient is asked for; that of each leaf is computed."""
    statement = main[i]
    if isinstance(statement, Grad):
        yield (*main[:i], Backward((output,), statement.cotangents[:1]), *main[i + 1 :])


def _again_from(main: Main, i: int, output: Ref) -> Iterator[Main]:
    """The backward starts at another tensor, which a pass before may have gone through."""
    before = tuple(replace(s, retain_graph=True) if isinstance(s, (Backward, Grad)) else s for s in main[:i])
    if before != main[:i]:
        yield from _from((*before, *main[i:]), i, output)


def _acts(topology: Topology) -> tuple[bool, bool]:
    """Whether main calls the net, and goes back: where a hook is never due, nothing that it could be given is wrong."""
    called = any(isinstance(act, Call) and not act.target for act in statements(topology))
    return called, any(isinstance(act, (Backward, Grad)) and bool(act.outputs) for act in statements(topology))


def _tensors(value: object, path: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    """Where the tensors are in what a call gives."""
    if isinstance(value, Tensor):
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (tuple, list)) else ()
    for key, entry in entries:
        yield from _tensors(entry, (*path, key))
