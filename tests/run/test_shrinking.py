"""Planted faults whose smallest topologies are written down here by hand: shrinking must end at just these.

A fault is either a patch of torch's Python code, and the session explores, or, which is faster, a condition that stands
for "the fault shows", and Hypothesis looks for a topology that meets it, as the session has it do.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from faults.engine import calling, each, receiving
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis.statistics import collector

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import applying, load
from hookcheck.oracle.due import Firing
from hookcheck.oracle.expected import Expected
from hookcheck.record.parts import read_parts
from hookcheck.run.examiner import Examiner
from hookcheck.run.session import Session, Unexplained
from hookcheck.topology.codec import decode
from hookcheck.topology.families import FAMILIES, family_named
from hookcheck.topology.layers.activation import ReLU, Sigmoid
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Input,
    Leak,
    Module,
    ModuleList,
    Recurse,
    Sequential,
    Statement,
    Topology,
    walk,
)
from hookcheck.topology.ops import Add
from hookcheck.topology.ops.moving import Clone
from hookcheck.topology.primitive import Layer
from hookcheck.topology.source import source
from hookcheck.topology.tree import Literal, Pack, Ref, Tree
from hookcheck.topology.values import values

Shows = Callable[[Topology], bool]

X, Y, H0, H1 = map(Ref, ("x", "y", "h0", "h1"))
ONE = Input("x", (1,), requires_grad=True)
FC = Linear(1, 1, bias=False)


def net(children: tuple[Module, ...], *body: Statement, gives: Tree = H0, takes: tuple[str, ...] = ("x",)) -> Composite:
    """A module of our own with the children ``m0``, ``m1``, …"""
    return Composite(tuple((f"m{i}", child) for i, child in enumerate(children)), takes, body, gives)


def step(place: int, *arguments: Ref, child: int | None = None) -> Call:
    """``h0 = m0(…)``, ``h1 = m1(…)``, …"""
    return Call(f"h{place}", f"m{place if child is None else child}", arguments)


def run(
    module: Module, *outputs: Ref, inputs: tuple[Input, ...] = (ONE,), labels: tuple[str, ...] = ("y0",)
) -> Topology:
    """``y = net(x)``, and one backward from its outputs."""
    cotangents = tuple(Input(f"v_{label}", (1,)) for label in labels)
    call = Call("y", "", tuple(Ref(i.name) for i in inputs))
    backward = Backward(outputs or (Y,), tuple(Ref(c.name) for c in cotangents))
    return Topology(module, (*inputs, *cotangents), (call, backward))


def fires(condition: Callable[[Firing], bool]) -> Shows:
    """Whether a hook is due to be called in such a way."""
    return lambda t: any(map(condition, Expected(t, values(t)).firings))


def uses_twice(topology: Topology) -> bool:
    """A tensor goes into two steps, so that its gradient is a sum."""
    trace = Expected(topology, values(topology)).trace
    read = [id(tensor) for node in trace.nodes for tensor in node.inputs]
    return len(set(read)) < len(read)


def lacks_one(gradients: tuple[Any, ...]) -> bool:
    """Some are there and some are None."""
    return len({gradient is None for gradient in gradients}) == 2


def has(kind: type[Layer], **settings: Any) -> Shows:
    """A layer of that kind, set in that way."""
    return lambda t: any(
        isinstance(m, kind) and all(getattr(m, name) == value for name, value in settings.items())
        for _, m in walk(t.module)
    )


def composites(topology: Topology) -> list[tuple[str, Composite]]:
    """The modules of our own, with their paths."""
    return [(path, m) for path, m in walk(topology.module) if isinstance(m, Composite)]


def recursive(topology: Topology) -> bool:
    """A module calls itself."""
    return any(isinstance(s, Recurse) for _, m in composites(topology) for s in m.body)


LAYER = net((Sigmoid(),), step(0, X))
SUM = net((Sigmoid(),), step(0, X), Apply("h1", Add(), (H0, X)), gives=H1)
LISTED = Composite((("held", ModuleList((Sigmoid(),))),), ("x",), (Call("h0", "held.0", (X,)),), H0)
TWO = net((Sigmoid(),), step(0, X), gives=Pack("tuple", (H0, X)))
"""Both outputs depend on the input; what a loss on one of them leaves out has no gradient."""

STANDS_FOR: dict[str, tuple[str, Shows, Topology]] = {
    "the first of two terms of a gradient is lost": (
        "residual",
        uses_twice,
        run(net((Sigmoid(),), step(0, X), Apply("h1", Add(), (X, H0)), gives=H1)),
    ),
    "a module inside nn.Sequential does not fire": (
        "residual",
        lambda t: any(isinstance(m, Sequential) for _, m in walk(t.module)),
        run(net((Sequential((replace(SUM, body=(SUM.body[0], Apply("h1", Add(), (X, H0)))),)),), step(0, X))),
    ),
    "the hook of a module that holds modules in modules does not fire": (
        "random-graph",
        fires(lambda f: f.call.path.count(".") == 1),
        run(net((LAYER,), step(0, X))),
    ),
    "a tensor that is added inside a module is mistaken for its output": (
        "random-graph",
        lambda t: any(isinstance(s, Apply) and s.op == Add() for path, m in composites(t) if path for s in m.body),
        run(net((SUM,), step(0, X))),
    ),
    "the second of two layers with parameters gets the gradient of the first": (
        "random-graph",
        lambda t: sum(isinstance(m, Linear) for _, m in walk(t.module)) == 2,
        run(net((FC, FC), step(0, X), step(1, H0), gives=H1)),
    ),
    "the outputs of a module inside another are counted from behind": (
        "random-graph",
        fires(lambda f: isinstance(f.call.module, Composite) and bool(f.call.path) and lacks_one(f.grad_output)),
        run(net((TWO,), step(0, X), gives=Ref("h0", (1,)))),
    ),
    "a module that is called a second time does not fire": (
        "shared-module",
        lambda t: not recursive(t) and fires(lambda f: f.call.number > 0)(t),
        run(net((Sigmoid(),), step(0, X), step(1, H0, child=0), gives=H1)),
    ),
    "the second name of a module has hooks of its own": (
        "shared-module",
        lambda t: bool(t.ties),
        replace(run(net((Sigmoid(), Sigmoid()), step(0, X), step(1, H0), gives=H1)), ties=(("m1", "m0"),)),
    ),
    "the gradient of a tensor passed by keyword is among those of the others": (
        "keyword-input",
        lambda t: any(isinstance(s, Call) and bool(s.args) and bool(s.kwargs) for s in t.main),
        Topology(
            net((Sigmoid(),), Apply("h0", Add(), (Ref("x0"), Ref("x1"))), Call("h1", "m0", (H0,)), gives=H1,
                takes=("x0", "x1")),
            (replace(ONE, name="x0"), replace(ONE, name="x1"), Input("v_y0", (1,))),
            (Call("y", "", (Ref("x0"),), (("x1", Ref("x1")),)), Backward((Y,), (Ref("v_y0"),))),
        ),
    ),
    "no tensor is found in a dict": (
        "container-output",
        lambda t: any(isinstance(m.gives, Pack) and m.gives.kind == "dict" for _, m in composites(t)),
        run(net((Sigmoid(),), step(0, X), gives=Pack("dict", (H0,), ("left",))), Ref("y", ("left",))),
    ),
    "a container keeps a layer below a list from firing": (
        "nested",
        lambda t: any(isinstance(m, ModuleList) for _, m in walk(t.module)),
        run(net((LISTED,), step(0, X))),
    ),
    "a layer that works in place gets the gradient of what it has overwritten": (
        "inplace",
        has(ReLU, inplace=True),
        run(net((ReLU(inplace=True),), Apply("h0", Clone(), (X,)), Call("h1", "m0", (H0,)), gives=H1)),
    ),
    "a hook fires in the first backward alone": (
        "several-losses",
        fires(lambda f: f.backward > 0),
        Topology(
            net((FC, Sigmoid()), step(0, X), Leak("h0", H0), step(1, H0), gives=H1),
            (ONE, Input("v_y0", (1,)), Input("v_h0", (1,))),
            (
                Call("y", "", (X,)),
                Backward((Y,), (Ref("v_y0"),), retain_graph=True),
                Backward((Ref("leaked", ("h0",)),), (Ref("v_h0"),)),
            ),
        ),
    ),
    "hooks are lost in eval mode": (
        "single-layer",
        lambda t: not t.training,
        replace(run(Sigmoid(), inputs=(replace(ONE, name="x0"),)), training=False),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("what", STANDS_FOR)
def test_what_stands_for_a_fault_shrinks_to_what_a_person_would_write(what: str) -> None:
    """From three of four starts at least: from some, one in ten at worst, no single step leads on to the smallest."""
    family, shows, written = STANDS_FOR[what]
    assert shows(written)
    phases = (Phase.generate, Phase.shrink)
    like_session = settings(database=None, phases=phases, max_examples=400)
    topologies = family_named(family).topologies()
    starts = [find(topologies, shows, settings=like_session, random=Random(number)) for number in range(4)]
    others = [start for start in starts if start != written]
    assert len(others) <= 1, "\n\n".join(source(start).script() for start in others)


def doubled_again() -> AbstractContextManager[None]:
    """A module whose hook was called before gets twice the gradients."""
    seen: list[Any] = []

    def call(hook: Any, module: Any, grad_input: Any, grad_output: Any) -> Any:
        again = any(module is other for other in seen)
        seen.append(module)
        return hook(module, each(lambda g: g * 2)(grad_input) if again else grad_input, grad_output)

    return calling(call)


FAULTS: dict[str, tuple[str, Callable[[], AbstractContextManager[None]], Topology]] = {
    "every gradient of an input is doubled": ("random-graph", lambda: receiving(each(lambda g: g * 2)), run(LAYER)),
    "a gradient that is None is left out where it comes last": (
        "random-graph",
        lambda: receiving(grad_output=lambda g: g[:-1] if len(g) > 1 and g[-1] is None else g),
        run(TWO, Ref("y", (0,))),
    ),
    "a module that fires again gets twice the gradients": (
        "shared-module",
        doubled_again,
        replace(
            run(net((Sigmoid(),), step(0, X), Recurse("h1", H0, "depth"), gives=H1, takes=("x", "depth"))),
            main=(Call("y", "", (X, Literal(1))), Backward((Y,), (Ref("v_y0"),))),
        ),
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_exploration_shrinks_a_fault_to_what_a_person_would_write(what: str, tmp_path: Path) -> None:
    family, patch, written = FAULTS[what]
    clauses, ledgers = tuple(CLAUSES.values()), {"cpu": applying(load(), torch.__version__, "cpu")}
    session = Session(
        ("full_backward",),
        clauses,
        ledgers,
        {family: ()},
        0,
        tmp_path,
        "gw0",
        Examiner(clauses, ledgers),
    )
    try:
        with patch(), pytest.raises(Unexplained):
            session.explore(family, "cpu", 60)
    finally:
        session.close()
    (line,) = [line for line in read_parts(tmp_path / "cpu") if line["type"] == "topology"]
    counterexample = decode(line["content"])
    assert counterexample == written, source(counterexample).script()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_family_throws_away_more_than_five_per_cent_of_what_it_draws(family: str) -> None:
    """What Hypothesis breaks off itself, since it was to be short, is not counted; a draw that is retried is."""
    statistics: dict[str, Any] = {}

    @seed(0)
    @settings(
        max_examples=100,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(family_named(family).topologies())
    def drawn(topology: Topology) -> None:
        pass

    with collector.with_value(statistics.update):
        drawn()
    cases = [case for case in statistics["generate-phase"]["test-cases"] if case["status"] != "overrun"]
    thrown = [c for c in cases if c["status"] == "invalid" or any("Retried draw" in event for event in c["events"])]
    assert len(cases) >= 100
    assert len(thrown) <= 0.05 * len(cases)
