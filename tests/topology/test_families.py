from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from hookcheck.errors import HookcheckError
from hookcheck.oracle.expected import Expected
from hookcheck.topology.families import FAMILIES, Family, family_named
from hookcheck.topology.families.grammar import Writer
from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.loss_entropy import BCELoss
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Input,
    Leak,
    Sequential,
    Topology,
    Within,
    size,
    statements,
    walk,
)
from hookcheck.topology.primitive import Layer
from hookcheck.topology.source import source
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

from . import test_families_passes, test_families_values, test_families_wiring
from .running import agrees, array, assert_same, built, gradients, scripted, tensors, values_of_main
from .samples import runnable
from .sampling import drawn, reaches

FIVE = ("single-node", "multi-node", "no-grad-input", "intermediate-loss", "no-grad-evaluation")
"""The families that are proved here; the others are in the modules beside this one."""

every = pytest.mark.parametrize("family", [FAMILIES[name] for name in FIVE], ids=FIVE)


@every
def test_every_topology_runs_and_the_oracle_agrees_with_torch(family: Family) -> None:
    for topology in map(runnable, drawn(family.topologies)[:60]):
        names, expected = built(topology), Expected(topology, values(topology))

        observed = dict(tensors(values_of_main(topology, names)))
        for name, value in tensors({k: v for k, v in expected.trace.names.items() if k != "leaked" or v}):
            assert agrees(observed.pop(name), value, expected), name
        assert not observed

        for name, gradient in gradients(topology, names).items():
            known = expected.leaf_gradients.get(name)
            if known is None or gradient is None:
                assert known is gradient, name
            else:
                assert gradient.dtype == getattr(torch, topology.dtype)
                assert expected.close(array(gradient), known, "cpu"), name


@every
def test_the_script_of_every_topology_gives_the_same_bits(family: Family) -> None:
    for topology in map(runnable, drawn(family.topologies)[:25]):
        ours, theirs = built(topology), scripted(topology)
        assert_same(values_of_main(topology, ours), values_of_main(topology, theirs))
        assert_same(gradients(topology, ours), gradients(topology, theirs))


def modules(topology: Topology) -> list[Layer]:
    return [module for _, module in walk(topology.module) if isinstance(module, Layer)]


def convolves(topology: Topology) -> bool:
    return [type(module) for module in modules(topology)] == [Conv2d]


def begins_with_linear(topology: Topology) -> bool:
    return isinstance(modules(topology)[0], Linear) and 1 <= len(topology.inputs[0].shape) <= 4


def has_an_argument_without_grad(topology: Topology) -> bool:
    calls = Expected(topology, values(topology)).trace.calls
    return any(arg is not None and not arg.requires_grad for call in calls for arg in call.args)


def has_a_loss_on_a_leak(topology: Topology) -> bool:
    uses = [s.outputs if isinstance(s, Backward) else s.args for s in topology.main if isinstance(s, (Backward, Apply))]
    leaked = {s.name for s in statements(topology) if isinstance(s, Leak)}
    return bool(leaked) and leaked == {r.path[0] for refs in uses for r in refs if r.name == "leaked"}


def evaluates(topology: Topology) -> bool:
    first = topology.main[0]
    return isinstance(first, Within) and first.mode in ("no_grad", "inference_mode") and isinstance(first.body[0], Call)


PROMISES: dict[str, Callable[[Topology], bool]] = {
    "single-node": convolves,
    "multi-node": begins_with_linear,
    "no-grad-input": has_an_argument_without_grad,
    "intermediate-loss": has_a_loss_on_a_leak,
    "no-grad-evaluation": evaluates,
}


@every
def test_every_topology_keeps_the_promise_of_its_family(family: Family) -> None:
    assert [t for t in drawn(family.topologies) if not PROMISES[family.name](t)] == []


def smallest(name: str, condition: Callable[[Topology], bool]) -> Topology:
    """The minimal member of a family that meets ``condition``; the explain phase, which only varies it, is left out."""
    phases = (Phase.generate, Phase.shrink)
    return find(
        FAMILIES[name].topologies(), condition, settings=settings(database=None, phases=phases, max_examples=1000)
    )


X = Ref("x")
CALLED = Call("y", "", (X,))
BACKWARD = Backward((Ref("y"),), (Ref("v_y"),))
PLAIN = Linear(1, 1, bias=False)
MINIMAL = {
    "single-node": Topology(
        Conv2d(1, 1, (1, 1), bias=False),
        (Input("x", (1, 1, 1, 1), requires_grad=True), Input("v_y", (1, 1, 1, 1))),
        (CALLED, BACKWARD),
    ),
    "multi-node": Topology(PLAIN, (Input("x", (1,), requires_grad=True), Input("v_y", (1,))), (CALLED, BACKWARD)),
    "no-grad-input": Topology(PLAIN, (Input("x", (1,)), Input("v_y", (1,))), (CALLED, BACKWARD)),
    "intermediate-loss": Topology(
        Composite(
            (("m0", PLAIN), ("m1", PLAIN)),
            ("x",),
            (Call("h0", "m0", (X,)), Leak("h", Ref("h0")), Call("h1", "m1", (Ref("h0"),))),
            Ref("h1"),
        ),
        (Input("x", (1,), requires_grad=True), Input("v_h", (1,))),
        (CALLED, Backward((Ref("leaked", ("h",)),), (Ref("v_h"),))),
    ),
    "no-grad-evaluation": Topology(PLAIN, (Input("x", (1,)),), (Within("no_grad", (CALLED,)),), training=False),
}


@every
def test_the_minimal_member_is_what_a_person_would_write(family: Family) -> None:
    assert smallest(family.name, lambda _: True) == MINIMAL[family.name]


@every
def test_a_counterexample_shrinks_to_few_small_layers(family: Family) -> None:
    counterexample = smallest(family.name, lambda t: any(getattr(module, "bias", False) for module in modules(t)))
    assert len(modules(counterexample)) <= 2, source(counterexample).script()
    assert size(counterexample)[1] <= size(MINIMAL[family.name])[1] + 2, source(counterexample).script()


def dimensions(count: int) -> Callable[[Topology], bool]:
    return lambda t: len(t.inputs[0].shape) == count


def uses(kind: type[Layer]) -> Callable[[Topology], bool]:
    return lambda t: any(isinstance(module, kind) for module in modules(t))


def rooted_in(kind: type) -> Callable[[Topology], bool]:
    return lambda t: isinstance(t.module, kind)


def differs(name: str) -> Callable[[Topology], bool]:
    return lambda t: any(
        isinstance(m, Conv2d) and getattr(m, name) not in ((1, 1), (0, 0), 1, True) for m in modules(t)
    )


def mode(name: str) -> Callable[[Topology], bool]:
    return lambda t: any(isinstance(s, Within) and s.mode == name for s in statements(t))


def backwards(count: int) -> Callable[[Topology], bool]:
    return lambda t: sum(isinstance(s, Backward) for s in statements(t)) == count


def requires(*flags: bool) -> Callable[[Topology], bool]:
    return lambda t: tuple(i.requires_grad for i in t.inputs if not i.name.startswith("v_")) == flags


def roots(count: int) -> Callable[[Topology], bool]:
    return lambda t: any(isinstance(s, Backward) and len(s.outputs) == count for s in statements(t))


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        *[("single-node", differs(s)) for s in ("stride", "padding", "dilation", "groups", "bias", "kernel_size")],
        ("single-node", rooted_in(Sequential)),
        *[("multi-node", dimensions(count)) for count in (1, 2, 3, 4)],
        *[("multi-node", uses(kind)) for kind in (Sigmoid, Tanh, ReLU)],
        *[("multi-node", rooted_in(kind)) for kind in (Linear, Sequential, Composite)],
        ("multi-node", lambda t: t.dtype == "float32"),
        *[("no-grad-input", requires(*flags)) for flags in ((False,), (True, False), (False, True), (False, False))],
        ("no-grad-input", lambda t: bool(t.frozen)),
        ("no-grad-input", uses(Conv2d)),
        *[("intermediate-loss", roots(count)) for count in (1, 2)],
        *[("intermediate-loss", requires(flag)) for flag in (True, False)],
        ("intermediate-loss", lambda t: sum(isinstance(m, Composite) for _, m in walk(t.module)) == 3),
        *[("no-grad-evaluation", mode(m)) for m in ("no_grad", "inference_mode", "enable_grad")],
        *[("no-grad-evaluation", backwards(count)) for count in (0, 1)],
        *[("no-grad-evaluation", lambda t, flag=flag: t.training is flag) for flag in (True, False)],
        ("no-grad-evaluation", uses(Conv2d)),
    ],
)
def test_a_family_reaches_every_corner_that_it_speaks_of(name: str, condition: Callable[[Topology], bool]) -> None:
    assert reaches(FAMILIES[name].topologies, condition)


@pytest.mark.parametrize("x", [-30.0, 30.0])
@settings(max_examples=5)
@given(data=st.data())
def test_what_lies_between_0_and_1_keeps_away_from_both(x: float, data: st.DataObject) -> None:
    """In float32 a sigmoid of 30 is 1, and the gradient of BCELoss at 1 is not that near it."""

    @st.composite
    def loss(draw: st.DrawFn) -> Composite:
        writer = Writer(draw, (2,))
        return writer.module(writer.step(writer.inputs[0], (BCELoss,))[0].ref)

    module = data.draw(loss())
    inputs = tuple(Input(name, (2,), domain="real" if name == "x" else "unit") for name in module.takes)
    topology = Topology(module, inputs, (Call("y", "", tuple(Ref(i.name) for i in inputs)),))
    (call,) = [c for c in Expected(topology, {**values(topology), "x": np.full(2, x)}).trace.calls if c.path]
    assert call.args[0] is not None
    assert ((call.args[0].array > 0.25) & (call.args[0].array < 0.75)).all()


def test_families_go_by_their_names() -> None:
    assert all(family_named(name).name == name for name in FAMILIES)
    assert all(family.statement.endswith(".") for family in FAMILIES.values())
    with pytest.raises(HookcheckError, match=r"unknown family 'quantum'; choose from single-node, "):
        family_named("quantum")


def test_every_family_has_its_promise_and_its_minimal_member_here() -> None:
    assert PROMISES.keys() == set(FIVE) == MINIMAL.keys()
    beside = (test_families_passes.PROMISES, test_families_values.PROMISES, test_families_wiring.PROMISES)
    proved = {
        getattr(family, "__name__", family).rpartition(".")[2].replace("_", "-")
        for promises in beside
        for family in promises  # modules, or names
    }
    assert {*FIVE, *proved, "single-layer", "random-graph"} == FAMILIES.keys()


@pytest.mark.slow
def test_numbers_in_the_code_around_change_no_draw(tmp_path: Path) -> None:
    """Hypothesis tries numbers that it sees in modules that are not installed, which differ from user to user."""
    numbers = tmp_path / "numbers_around.py"
    numbers.write_text(f"NUMBERS = {list(range(1000, 2000))}\n", encoding="utf-8")
    drawing = """\
from hypothesis import Phase, given, seed, settings
from hookcheck.topology.codec import identify
from hookcheck.topology.families import FAMILIES

@seed(0)
@settings(max_examples=600, database=None, deadline=None, phases=[Phase.generate])
@given(FAMILIES["multi-node"].topologies())
def run(topology):
    print(identify(topology))

run()
"""
    alone, among = (
        subprocess.run(
            [sys.executable, "-c", first + drawing],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for first in ("", "import numbers_around\n")
    )
    assert len(alone.splitlines()) == 600
    assert among == alone
