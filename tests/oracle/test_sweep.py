"""One backward pass over a traced graph, with the boundaries there or transparent."""

from __future__ import annotations

import numpy as np
import pytest

from hookcheck.oracle.graph import Pass, Trace
from hookcheck.oracle.sweep import Sweep, sweep
from hookcheck.topology.model import Apply, Backward, Call, Leak, Within
from hookcheck.topology.ops import Add
from hookcheck.topology.tree import Ref

from .hand import CALLED, CHAIN, FROM_Y, LEAKED, LEAKING, H, V, X, expected, net, numbers, pair

TWO = net(pair(H, Ref("z")), Call("h", "a", (X,)), Call("z", "b", (X,)))
ONE_OF_TWO = [CALLED, Backward((Ref("y", (0,)),), (V,))]


def floats(swept: Sweep) -> dict[str, float]:
    return {str(name): float(gradient.item()) for name, gradient in swept.asked.items()}


def both(e_trace: Trace) -> tuple[Sweep, Sweep]:
    (backward,) = e_trace.passes
    return sweep(e_trace, backward, joined=True), sweep(e_trace, backward, joined=False)


def test_boundaries_that_lose_nothing_change_no_leaf() -> None:
    hooked, plain = both(expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=7, v=5).trace)
    assert floats(hooked) == floats(plain) == {"x": 30, "a.weight": 105, "b.weight": 70}
    assert hooked.received.keys() == plain.received.keys()


def test_a_joined_boundary_fills_what_is_absent_with_zeros_and_a_transparent_one_does_not() -> None:
    trace = expected(TWO, ONE_OF_TWO, {"a": 2, "b": 3}, x=1, v=5).trace
    hooked, plain = both(trace)
    exit = trace.calls[0].exit
    assert exit is not None
    assert numbers(hooked.received[exit.index]) == numbers(plain.received[exit.index]) == (5, None)
    assert numbers(hooked.passed[exit.index]) == (5, 0)
    assert numbers(plain.passed[exit.index]) == (5, None)
    assert floats(hooked) == {"x": 10, "a.weight": 5, "b.weight": 0}
    assert floats(plain) == {"x": 10, "a.weight": 5}


def test_zeros_have_the_shape_of_what_they_stand_for() -> None:
    trace = expected(TWO, ONE_OF_TWO, {"a": 2, "b": 3}, x=1, v=5).trace
    hooked, _ = both(trace)
    exit = trace.calls[0].exit
    assert exit is not None
    zeros = hooked.passed[exit.index][1]
    assert zeros is not None
    assert zeros.shape == (1,)


def test_a_boundary_that_nothing_reaches_does_not_run() -> None:
    trace = expected(LEAKING, [CALLED, Backward((LEAKED,), (V,))], {"a": 2, "b": 3}, x=1, v=7).trace
    hooked, _ = both(trace)
    net_, a, b = trace.calls
    assert a.exit is not None
    assert a.exit.index in hooked.received
    for node in (net_.exit, b.entry, b.exit):
        assert node is not None
        assert node.index not in hooked.received


def test_nodes_that_ran_before_are_those_upstream_alone() -> None:
    trace = expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=7, v=5).trace
    hooked, _ = both(trace)
    # Made in this order: entry of net, entry of a, a, exit of a, entry of b, b, exit of b, exit of net.
    assert hooked.earlier == {7: 0, 6: 1 << 7, 5: 3 << 6, 4: 7 << 5, 3: 15 << 4, 2: 31 << 3, 1: 63 << 2, 0: 127 << 1}


def test_a_node_waits_for_all_its_consumers() -> None:
    # s = h + b(h) with h = a(x): a's side comes after b's although one of its consumers is the sum itself.
    residual = net(Ref("s"), Call("h", "a", (X,)), Call("z", "b", (H,)), Apply("s", Add(), (H, Ref("z"))))
    trace = expected(residual, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=1, v=5).trace
    hooked, _ = both(trace)
    _, a, b = trace.calls
    assert a.exit is not None
    assert b.entry is not None
    assert numbers(hooked.received[a.exit.index]) == (20,)  # 5 + 5·3
    assert hooked.earlier[a.exit.index] >> b.entry.index & 1


def asked(trace: Trace, *names: str) -> Sweep:
    (backward,) = trace.passes
    return sweep(trace, Pass(backward.roots, backward.cotangents, frozenset(names)), joined=True)


@pytest.fixture
def chain() -> Trace:
    return expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=7, v=5).trace


def test_asked_for_the_last_weight_alone_no_input_side_runs(chain: Trace) -> None:
    swept = asked(chain, "b.weight")
    assert floats(swept) == {"b.weight": 70}
    assert not any(call.entry is None or call.entry.index in swept.received for call in chain.calls)


def test_asked_for_all_weights_the_module_does_not_fire_but_what_lies_between_them_does(chain: Trace) -> None:
    swept = asked(chain, "a.weight", "b.weight")
    assert floats(swept) == {"a.weight": 105, "b.weight": 70}
    net_, a, b = (call.entry for call in chain.calls)
    assert net_ is not None
    assert a is not None
    assert b is not None
    assert [node.index in swept.received for node in (net_, a, b)] == [False, False, True]


def test_asked_for_the_input_alone_every_side_runs_and_no_weight_is_kept(chain: Trace) -> None:
    swept = asked(chain, "x")
    assert floats(swept) == {"x": 30}
    assert len(swept.received) == len(chain.nodes)


def test_asked_for_a_leaf_that_is_not_there_nothing_runs(chain: Trace) -> None:
    swept = asked(chain, "elsewhere")
    assert (swept.asked, swept.received) == ({}, {})


def test_a_root_that_is_a_leaf_gets_its_cotangent() -> None:
    e = expected(CHAIN, [CALLED, Backward((X,), (V,))], {"a": 2, "b": 3}, x=7, v=5)
    assert floats(both(e.trace)[1]) == {"x": 5}


def test_two_roots_that_are_one_tensor_add_up() -> None:
    e = expected(CHAIN, [CALLED, Backward((Ref("y"), Ref("y")), (V, Ref("w")))], {"a": 2, "b": 3}, x=1, v=5, w=7)
    assert floats(both(e.trace)[0])["x"] == 72  # (5 + 7)·3·2


def test_gradients_are_not_written_into_each_other() -> None:
    # Adding up in place would change v, which both branches of the sum hand on.
    twice = net(Ref("s"), Leak("h", X), Apply("s", Add(), (X, X)))
    e = expected(twice, [CALLED, FROM_Y], {"a": 1, "b": 1}, x=1, v=5)
    assert floats(both(e.trace)[0]) == {"x": 10}
    assert np.array_equal(e.trace.leaves["v"].array, [5])


def test_nothing_flows_into_what_was_made_under_no_grad() -> None:
    cut = net(Ref("z"), Within("no_grad", (Call("h", "a", (X,)),)), Call("z", "b", (H,)))
    e = expected(cut, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=7, v=5)
    assert floats(both(e.trace)[0]) == {"b.weight": 70}
