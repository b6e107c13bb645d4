"""What may pass where the experiment fails: no hook, another kind or value, or a network that is one step away."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from hookcheck.hooks.kinds import BACKWARD, KINDS
from hookcheck.oracle.graph import Tensor
from hookcheck.oracle.trace import trace
from hookcheck.probe.run import lacking
from hookcheck.repro.grown import grown
from hookcheck.repro.network import ONES, network
from hookcheck.repro.overriding import overriding
from hookcheck.repro.question import ALIVE, CALLS, ERROR, VALUE, WARNINGS, Question
from hookcheck.repro.reduce import INVALID, one_step_away
from hookcheck.repro.script import Control
from hookcheck.repro.sighting import Sighting
from hookcheck.topology.model import Backward, Call, Grad, Topology, statements
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
        yield Control(hooked=True)
    if case.kind.call == BACKWARD and case.kind.variant == "legacy":
        full = KINDS["full_backward" if case.kind.scope == "module" else "global_full_backward"]
        if not lacking(full.name) and asked.place == CALLS:
            yield Control(register=full.register)
    if asked.place == CALLS and asked.index and asked.argument in ("grad_input", "grad_output"):
        yield from (Control(value=i.name) for i in case.topology.inputs if i.requires_grad)
    less = [*islice(_near(case.topology), NEIGHBOURS)]
    yield from (Control(topology=near) for near in _beside(case.topology, less, own_class=False))
    for own_class in (False, True):
        yield from (Control(topology=near) for near in _beside(case.topology, grown(case.topology), own_class))
    yield from (Control(topology=near) for near in _beside(case.topology, less, own_class=True))
    yield Control()


def _beside(topology: Topology, others: Iterable[Topology], own_class: bool) -> Iterator[Topology]:
    """Those of the others that one script can have beside the network, with a class of their own or without."""
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
    for i, statement in enumerate(topology.main):
        if isinstance(statement, (Backward, Grad)):
            for output in (output for output in outputs if statement.outputs != (output,)):
                changed = replace(statement, outputs=(output,), cotangents=statement.cotangents[:1])
                yield replace(topology, main=(*topology.main[:i], changed, *topology.main[i + 1 :]))
    yield from one_step_away(topology)


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
