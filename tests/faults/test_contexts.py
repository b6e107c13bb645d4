"""Is it seen when a context loses hooks, calls them twice, or hands them something else?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from faults.contexts import (
    DURING,
    LASTING,
    OUT_OF_REACH,
    OWNERS,
    WITHIN,
    broken,
    broken_batch,
    broken_for,
    broken_from_then_on,
    broken_from_then_on_within,
    broken_within,
)
from faults.engine import FULL
from faults.networks import CALLED, FROM_Y, V, X, Y, run
from faults.samples import deviations, sound

from hookcheck.probe.run import unavailable
from hookcheck.topology.contexts import CALL, CALLER, CONTEXTS, STEPS
from hookcheck.topology.families import compiled
from hookcheck.topology.families.context import behind, called_within
from hookcheck.topology.families.grammar import Value
from hookcheck.topology.families.networks import Network
from hookcheck.topology.families.tensors_in_contexts import refused
from hookcheck.topology.layers.activation import Tanh
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Grad, Input, Sequential, Topology, Within
from hookcheck.topology.tree import Ref

OF_CLASS: dict[str, Callable[[torch.Tensor], bool]] = {
    "negative view": lambda tensor: tensor.is_neg(),
    "large strides": lambda tensor: not tensor.is_contiguous(),
    "subclass": lambda tensor: type(tensor).__name__ == "Sub",
}
"""How a tensor of a class is told from others, a strided one among them."""

NET = Sequential((Linear(3, 3), Tanh()))
NETWORK = Network(NET, (Input("x", (2, 3), True),), (Value(Y, (2, 3)),))
WITHOUT_BACKWARD = ("vmap", "vjp", "dual_inputs", "no_grad", "inference_mode")
OWN_MODES = ("function_mode", "dispatch_mode")
NESTED = (
    ("thread", "functional_call"), ("functional_call", "functional_call"), ("ddp", "replica"), ("replica", "thread"),
    ("saved_tensors_hooks", "autocast"), ("module_tracker", "dispatch_mode"), ("one_thread", "dual_level"),
)  # fmt: skip
"""Contexts that are within one of their place, the outer one first."""

AROUND_COMPILED = (
    ("functional_call", "compile_eager"), ("function_mode", "after_compile"), ("detect_anomaly", "module_compile"),
    ("autocast", "compile_aot_eager"), ("one_thread", "compiled_autograd"),
)  # fmt: skip
"""Contexts with what compiles within."""

FORWARDS = ("forward_pre", "forward", "global_forward_pre", "global_forward")
BATCHED = run(NET, CALLED, Grad("g", (Y,), (X, Ref("net.0.weight")), (V,), context="is_grads_batched"))


def inside(name: str) -> Topology:
    """Two layers in the context of that name."""
    wraps = CONTEXTS[name].wraps
    if wraps == STEPS:
        return run(behind(NETWORK, name).module, CALLED, FROM_Y)
    if wraps == CALLER:
        return run(NET, replace(CALLED, context=name), FROM_Y)
    return run(NET, *((Within(name, (CALLED,)), FROM_Y) if wraps == CALL else (Within(name, (CALLED, FROM_Y)),)))


def of_class(topology: Topology, tensor: str) -> Topology:
    """The network, given a tensor of that class."""
    return replace(topology, inputs=(replace(topology.inputs[0], tensor=tensor), *topology.inputs[1:]))


def kinds(name: str, what: str) -> tuple[str, ...]:
    """The hook kinds that this must be seen with; in some contexts no backward hook of a module is called at all."""
    if name in WITHOUT_BACKWARD:
        return FORWARDS if what == "leaves hooks out" else ()
    return (*FORWARDS, *FULL) if what == "leaves hooks out" else FULL


def test_every_context_is_broken_in_turn() -> None:
    assert CONTEXTS.keys() - OWNERS.keys() - LASTING.keys() - OUT_OF_REACH.keys() == {"is_grads_batched"}


@pytest.mark.parametrize("what", WITHIN)
@pytest.mark.parametrize("name", OWNERS)
def test_a_fault_in_a_context_is_seen(name: str, what: str) -> None:
    if unavailable(inside(name), None):
        pytest.skip(f"torch {torch.__version__} has no {name}")
    for kind in kinds(name, what):
        before = sound(inside(name), kind)
        with broken(name, what):
            after = deviations(inside(name), kind)
        assert after - before, kind


@pytest.mark.parametrize("what", WITHIN)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if "aot_eager" in name else ()) for name in LASTING]
)
def test_a_fault_that_comes_with_a_context_is_seen(name: str, what: str) -> None:
    if unavailable(inside(name), None):
        pytest.skip(f"torch {torch.__version__} has no {name}, or does not compile here")
    for kind in ("forward", "full_backward") if what == "leaves hooks out" else ("full_backward",):
        before = sound(inside(name), kind)
        with broken_from_then_on(name, what):
            after = deviations(inside(name), kind)
        assert after - before, kind


@pytest.mark.parametrize("what", DURING)
@pytest.mark.parametrize("kind", FULL)
def test_a_fault_in_a_batched_backward_is_seen(kind: str, what: str) -> None:
    if unavailable(BATCHED, None):
        pytest.skip(f"torch {torch.__version__} has no batched gradients")
    before = sound(BATCHED, kind)
    with broken_batch(what):
        after = deviations(BATCHED, kind)
    assert after - before


def nested(outer: str, inner: str) -> Topology:
    """Two layers in the one context within the other."""
    wraps = {CONTEXTS[name].wraps for name in (outer, inner)}
    if wraps == {CALLER}:
        return run(called_within(NETWORK, inner).module, replace(CALLED, context=outer), FROM_Y)
    if wraps == {CALL}:
        return run(NET, Within(outer, (Within(inner, (CALLED,)),)), FROM_Y)
    return run(NET, Within(outer, (Within(inner, (CALLED, FROM_Y)),)))


@pytest.mark.parametrize("what", WITHIN)
@pytest.mark.parametrize(("outer", "inner"), [*product(OWN_MODES, OWN_MODES), *NESTED])
def test_a_fault_in_a_context_within_a_context_is_seen(outer: str, inner: str, what: str) -> None:
    both = nested(outer, inner)
    if unavailable(both, None):
        pytest.skip(f"torch {torch.__version__} has no {inner}")
    for kind in kinds(inner, what):
        before = sound(both, kind)
        with broken_within(outer, inner, what):
            assert deviations(inside(inner), kind) == sound(inside(inner), kind), kind  # by itself it is sound
            after = deviations(both, kind)
        assert after - before, kind


@pytest.mark.slow
@pytest.mark.parametrize(("outer", "inner"), AROUND_COMPILED)
def test_a_fault_in_what_compiles_within_a_context_is_seen(outer: str, inner: str) -> None:
    """It shows where the one is within the other, and on neither by itself."""
    compiling, around = inside(inner), CONTEXTS[outer].wraps
    both = compiled.within(compiling, {around: (outer,)})
    if unavailable(both, None):
        pytest.skip(f"torch {torch.__version__} has no {outer} or {inner}, or does not compile here")
    for kind in ("forward", "full_backward"):
        before = {topology: sound(topology, kind) for topology in (inside(outer), compiling, both)}
        after = {}
        for topology in before:
            with broken_from_then_on_within(outer, inner, "leaves hooks out"):
                after[topology] = deviations(topology, kind)
        assert [topology for topology in before if after[topology] - before[topology]] == [both], kind


@pytest.mark.parametrize("name", ["functional_call", "function_mode", "dispatch_mode", "saved_tensors_hooks", "ddp"])
@pytest.mark.parametrize("tensor", OF_CLASS)
def test_a_context_that_loses_the_hooks_of_one_class_of_tensors_is_seen(name: str, tensor: str) -> None:
    """It shows on a network with such a tensor, and on none without."""
    plain = inside(name)
    classed = of_class(plain, tensor)
    assert not refused(classed, name)
    if unavailable(classed, None):
        pytest.skip(f"torch {torch.__version__} has no {name}, or no such tensor")
    for kind in ("forward", "forward_pre", "full_backward"):
        before, of_plain = sound(classed, kind), sound(plain, kind)
        with broken_for(name, OF_CLASS[tensor]):
            assert deviations(plain, kind) == of_plain
            assert deviations(classed, kind) - before, kind


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compile_eager", "compile_aot_eager", "module_compile", "after_compile"])
@pytest.mark.parametrize("tensor", ["negative view", "large strides"])
def test_torch_compile_that_loses_the_hooks_of_one_class_of_tensors_is_seen(name: str, tensor: str) -> None:
    """It shows on a network with such a tensor, and on none without, nor where nothing is compiled."""
    plain = inside(name)
    classed, uncompiled = (of_class(topology, tensor) for topology in (plain, run(NET, CALLED, FROM_Y)))
    assert not refused(classed, name)
    if unavailable(classed, None):
        pytest.skip(f"torch {torch.__version__} has no {name} of such tensors, or does not compile here")
    for kind in ("forward", "full_backward"):
        before = {topology: sound(topology, kind) for topology in (uncompiled, plain, classed)}
        after = {}
        for topology in before:
            with broken_for(name, OF_CLASS[tensor]):
                after[topology] = deviations(topology, kind)
        assert [topology for topology in before if after[topology] - before[topology]] == [classed], kind


def test_contexts_that_are_sound_show_nothing() -> None:
    """What full backward hooks show in some of them the ledger knows."""
    deviating = (*WITHOUT_BACKWARD, "fully_shard")
    pairs = [(name, kind) for name in OWNERS for kind in (*FORWARDS, *(() if name in deviating else FULL))]
    by_context = {(name, kind): sound(inside(name), kind) for name, kind in pairs}
    assert {key for key, shown in by_context.items() if shown} == set()
