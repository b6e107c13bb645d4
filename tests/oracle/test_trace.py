"""The forward pass: values, the graph that is left, and the calls that were made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hookcheck.oracle.graph import CallTrace, Tensor, Trace
from hookcheck.topology.model import Apply, Backward, Call, Composite, Leak, ModuleList, Sequential, Within
from hookcheck.topology.ops import Add
from hookcheck.topology.tree import Literal, Pack, Ref

from .hand import CALLED, CHAIN, FROM_Y, LEAKING, TIMES, H, V, X, expected, net, pair


def number(value: Any) -> float:
    assert isinstance(value, Tensor)
    return float(value.array.item())


def traced(trace: Trace, subject: str) -> CallTrace:
    (match,) = [call for call in trace.calls if call.subject == subject]
    return match


def test_values_by_hand() -> None:
    # h = 2·7, y = 3·14.
    trace = expected(LEAKING, [CALLED], {"a": 2, "b": 3}, x=7).trace
    assert number(trace.names["y"]) == 42
    assert number(trace.names["leaked"]["h"]) == 14


def test_containers_and_literals_come_out_as_they_went_in() -> None:
    gives = Pack("tuple", (Literal(None), Pack("list", (H, Literal("t"))), Pack("dict", (X,), ("k",))))
    trace = expected(net(gives, Call("h", "a", (X,))), [CALLED], {"a": 2, "b": 1}, x=7).trace
    nothing, listed, keyed = trace.names["y"]
    assert nothing is None
    assert isinstance(listed, list)
    assert (number(listed[0]), listed[1]) == (14, "t")
    assert isinstance(keyed, dict)
    assert number(keyed["k"]) == 7


def test_arguments_reach_forward_by_position_and_by_name() -> None:
    # takes (x, k, w) with k keyword-only: w is the second positional.
    body = (Call("h", "a", (X,)), Apply("s", Add(), (H, Ref("w"))), Apply("t", Add(), (Ref("s"), Ref("k", (0,)))))
    module = net(Ref("t"), *body, takes=("x", "k", "w"), keywords=("k",))
    call = Call("y", "", (X, Ref("w")), (("k", Pack("tuple", (Ref("u"),))),))
    assert number(expected(module, [call], {"a": 2, "b": 1}, x=7, w=100, u=1000).trace.names["y"]) == 1114


def test_calls_are_listed_in_order_of_entry_and_numbered_by_module() -> None:
    twice = net(Ref("z"), Call("h", "a", (X,)), Call("z", "a", (H,)))
    trace = expected(twice, [CALLED, Call("w", "", (X,))], {"a": 2, "b": 1}, x=7).trace
    subjects = ["net#0", "net.a#0", "net.a#1", "net#1", "net.a#2", "net.a#3"]
    assert [call.subject for call in trace.calls] == subjects


def test_a_tied_module_is_called_under_the_path_of_what_it_is_tied_to() -> None:
    outer = Composite((("p", CHAIN), ("q", CHAIN)), ("x",), (Call("h", "p", (X,)), Call("z", "q", (H,))), Ref("z"))
    trace = expected(outer, [CALLED], {"p.a": 2, "p.b": 3}, ties=(("q", "p"),), x=1).trace
    assert number(trace.names["y"]) == 36
    assert [c.subject for c in trace.calls] == [
        "net#0", "net.p#0", "net.p.a#0", "net.p.b#0", "net.p#1", "net.p.a#1", "net.p.b#1",
    ]  # fmt: skip


def test_ties_lead_on_to_further_ties() -> None:
    body = (Call("h", "a", (X,)), Call("z", "b", (H,)), Call("w", "c", (Ref("z"),)))
    three = Composite((("a", TIMES), ("b", TIMES), ("c", TIMES)), ("x",), body, Ref("w"))
    trace = expected(three, [CALLED], {"a": 2}, ties=(("b", "a"), ("c", "b")), x=1).trace
    assert number(trace.names["y"]) == 8
    assert [c.subject for c in trace.calls] == ["net#0", "net.a#0", "net.a#1", "net.a#2"]


def test_a_name_that_begins_like_a_tied_one_is_not_tied() -> None:
    body = (Call("h", "b", (X,)), Call("z", "bb", (H,)))
    module = Composite((("a", TIMES), ("b", TIMES), ("bb", TIMES)), ("x",), body, Ref("z"))
    trace = expected(module, [CALLED], {"a": 2, "bb": 5}, ties=(("b", "a"),), x=1).trace
    assert [c.subject for c in trace.calls] == ["net#0", "net.a#0", "net.bb#0"]
    assert number(trace.names["y"]) == 10


def test_a_call_has_a_boundary_on_either_side_where_something_requires_grad() -> None:
    trace = expected(CHAIN, [CALLED], {"a": 2, "b": 3}, grad="", x=7).trace
    sides = {c.subject: (c.entry is not None, c.exit is not None) for c in trace.calls}
    assert sides == {"net#0": (False, True), "net.a#0": (False, True), "net.b#0": (True, True)}


def test_without_grad_mode_there_are_no_boundaries_and_no_graph() -> None:
    trace = expected(CHAIN, [Within("no_grad", (CALLED,))], {"a": 2, "b": 3}, x=7).trace
    assert trace.nodes == []
    assert [(c.mode, c.entry, c.exit) for c in trace.calls] == [("no_grad", None, None)] * 3
    value = trace.names["y"]
    assert isinstance(value, Tensor)
    assert not value.requires_grad


def test_the_grad_mode_is_that_of_the_innermost_block() -> None:
    inside = net(Ref("z"), Call("h", "a", (X,)), Within("enable_grad", (Call("z", "b", (H,)),)))
    trace = expected(inside, [Within("inference_mode", (CALLED,)), Call("w", "", (X,))], {"a": 2, "b": 3}, x=7).trace
    assert [(c.subject, c.mode) for c in trace.calls] == [
        ("net#0", "inference_mode"),
        ("net.a#0", "inference_mode"),
        ("net.b#0", "grad"),
        ("net#1", "grad"),
        ("net.a#1", "grad"),
        ("net.b#1", "grad"),
    ]


def test_a_boundary_joins_all_tensors_of_a_side_and_leaves_requires_grad_as_it_was() -> None:
    two = net(pair(Ref("w"), H, Literal(1)), Call("h", "a", (X,)), takes=("x", "w"))
    call = traced(expected(two, [Call("y", "", (X, Ref("w")))], {"a": 2, "b": 1}, x=7, w=4).trace, "net#0")
    assert call.entry is not None
    assert call.exit is not None
    assert [t.requires_grad for t in call.entry.inputs] == [True, False]
    assert [t and (t.node, t.slot, t.requires_grad) for t in call.outputs] == [
        (call.exit, 0, False),
        (call.exit, 1, True),
        None,
    ]


def test_a_call_knows_the_tensors_on_either_side_of_its_output_boundary() -> None:
    trace = expected(LEAKING, [CALLED], {"a": 2, "b": 3}, x=7).trace
    a = traced(trace, "net.a#0")
    (inside,), (outside,) = a.outputs_inside, a.outputs
    assert inside is not None
    assert outside is not None
    assert inside is not outside
    assert outside.node is a.exit
    assert trace.names["leaked"]["h"] is outside
    assert traced(trace, "net.b#0").args == (outside,)


def test_the_steps_of_a_call_are_what_its_body_put_into_the_graph() -> None:
    trace = expected(CHAIN, [CALLED], {"a": 2, "b": 3}, x=7).trace
    kinds = {c.subject: [type(n.primitive).__name__ for n in c.steps if n.primitive] for c in trace.calls}
    assert kinds == {"net#0": ["Linear", "Linear"], "net.a#0": ["Linear"], "net.b#0": ["Linear"]}


def test_a_parameter_is_an_input_of_the_step_that_uses_it() -> None:
    trace = expected(TIMES, [CALLED], {"": 2}, x=7).trace
    (step,) = [node for node in trace.nodes if node.primitive is not None]
    assert step.parameters == ("weight",)
    assert step.inputs[-1] is trace.leaves["weight"]


def test_frozen_leaves_and_plain_inputs_do_not_require_grad() -> None:
    trace = expected(CHAIN, [CALLED], {"a": 2, "b": 3}, frozen=("a.weight",), grad="", x=7).trace
    assert {name: leaf.requires_grad for name, leaf in trace.leaves.items()} == {
        "a.weight": False,
        "b.weight": True,
        "x": False,
    }


def test_passes_hold_roots_cotangents_and_what_is_asked_for() -> None:
    main = [CALLED, Backward((Ref("y"),), (V,), inputs=(X,), retain_graph=True), Backward((Ref("y"),))]
    asked, everything = expected(TIMES, main, {"": 2}, x=7, v=5).trace.passes
    assert asked.wanted == frozenset({"x"})
    assert asked.cotangents[0].tolist() == [5]
    assert everything.wanted is None
    assert everything.cotangents[0].tolist() == [1]
    assert asked.roots == everything.roots


def test_a_module_list_is_never_called() -> None:
    with pytest.raises(TypeError, match="ModuleList is never called"):
        assert expected(ModuleList((TIMES,)), [CALLED], {"0": 2}, x=7).trace


def test_the_oracle_computes_in_float64_and_leaves_the_numbers_alone() -> None:
    e = expected(Sequential((TIMES, TIMES)), [CALLED, FROM_Y], {"0": 2, "1": 3}, x=7, v=5)
    before = {name: leaf.array.copy() for name, leaf in e.trace.leaves.items()}
    assert all(gradient.dtype == np.float64 for gradient in e.leaf_gradients.values())
    assert e.firings
    assert all(np.array_equal(before[name], leaf.array) for name, leaf in e.trace.leaves.items())


def test_a_leak_is_seen_even_from_a_call_that_is_nested() -> None:
    outer = Composite(
        (("inner", net(H, Call("h", "a", (X,)), Leak("h", H))),), ("x",), (Call("z", "inner", (X,)),), Ref("z")
    )
    trace = expected(outer, [CALLED], {"inner.a": 2, "inner.b": 1}, x=7).trace
    assert number(trace.names["leaked"]["h"]) == 14
