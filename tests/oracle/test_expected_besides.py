"""What else is expected: what a Node hook sees, the order of firings, and the names of gradients, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.gradient import state
from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.layers.cells import LSTMCell
from hookcheck.topology.model import Apply, Backward, Call, Composite, Grad, Input, Leak, Topology
from hookcheck.topology.ops import Add
from hookcheck.topology.ops.joining import Chunk
from hookcheck.topology.tree import Literal, Ref
from hookcheck.topology.values import values

from .hand import (
    CALLED,
    CHAIN,
    FROM_Y,
    LEAKED,
    LEAKING,
    TIMES,
    H,
    V,
    X,
    Y,
    expected,
    firing,
    leaves,
    net,
    pair,
)

Z, W = Ref("z"), Ref("w")


class TestOutputCalls:
    """``y = b · x``, where ``a · x`` is not used."""

    UNUSED = net(Ref("z"), Call("h", "a", (X,)), Call("z", "b", (X,)))

    def calls(self, *of: Ref) -> dict[str, float | None]:
        e = expected(self.UNUSED, [CALLED, Grad("g", (Y,), of, (V,))], {"a": 2, "b": 3}, x=7, v=5)
        return {c.name: None if c.gradient is None else float(c.gradient.item()) for c in e.output_calls}

    def test_a_pass_tells_the_outputs_that_it_goes_through(self) -> None:
        assert self.calls(Ref("x")) == {"[0]": 5, "b[0]": 5}

    def test_where_it_leads_to_nothing_its_beginning_is_unknown(self) -> None:
        assert self.calls(Ref("net.a.weight")) == {"[0]": None, "b[0]": None}
        e = expected(self.UNUSED, [CALLED, Grad("g", (Y,), (Ref("net.a.weight"),), (V,))], {"a": 2, "b": 3}, x=7, v=5)
        assert all(call.unknown for call in (*e.output_calls, *(c for c in e.retained if c.name != "a[0]")))


class TestOfFirstOutput:
    def seen(self, e: Expected) -> dict[str, float]:
        return {due.call.subject: float(due.gradient.item()) for due in e.of_first_output if due.gradient is not None}

    def test_it_is_the_whole_gradient_of_the_first_output(self) -> None:
        e = expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=7, v=5)
        assert self.seen(e) == {"net#0": 5, "net.a#0": 15, "net.b#0": 5}

    def test_what_is_leaked_and_given_back_counts_with_all_its_uses(self) -> None:
        both = net(H, Call("h", "a", (X,)), Leak("h", H))
        e = expected(both, [CALLED, Backward((LEAKED, Y), (W, V))], {"a": 2, "b": 1}, x=1, v=5, w=7)
        assert self.seen(e) == {"net#0": 12, "net.a#0": 12}

    def test_a_module_that_a_loss_bypasses_has_none(self) -> None:
        e = expected(LEAKING, [CALLED, Backward((LEAKED,), (V,))], {"a": 2, "b": 3}, x=1, v=7)
        assert self.seen(e) == {"net.a#0": 7}

    @pytest.mark.parametrize(("asked", "seen"), [("net.within.a.weight", {}), ("net.last.weight", {"net#0": 5})])
    def test_it_has_none_where_only_another_output_of_a_module_leads_to_what_is_asked(
        self, asked: str, seen: dict[str, float]
    ) -> None:
        # y = last · x, where x came through a module that computes a · x beside it, which is not used.
        within = net(pair(H, X), Call("h", "a", (X,)))
        calls = Call("p", "within", (X,)), Call("z", "last", (Ref("p", (1,)),))
        around = Composite((("within", within), ("last", TIMES)), ("x",), calls, Z)
        weights = {"within.a": 2, "within.b": 2, "last": 3}
        e = expected(around, [CALLED, Grad("g", (Y,), (Ref(asked),), (V,))], weights, x=7, v=5)
        assert {subject: g for subject, g in self.seen(e).items() if subject == "net#0"} == seen

    def test_a_number_in_front_hides_the_tensors_behind_it(self) -> None:
        # Torch takes the first item again and again until it has a tensor, and gives up at the 3.
        mixed = net(pair(Literal(3), H, Z), Call("h", "a", (X,)), Call("z", "b", (X,)))
        main = [CALLED, Backward((Ref("y", (1,)), Ref("y", (2,))), (V, W))]
        assert "net#0" not in self.seen(expected(mixed, main, {"a": 2, "b": 3}, x=1, v=5, w=7))

    def test_a_module_whose_first_output_is_not_used_has_none(self) -> None:
        two = net(pair(H, Z), Call("h", "a", (X,)), Call("z", "b", (X,)))
        e = expected(two, [CALLED, Backward((Ref("y", (1,)),), (V,))], {"a": 2, "b": 3}, x=1, v=5)
        assert self.seen(e) == {"net.b#0": 5}

    def test_a_module_that_gives_its_input_back_has_the_node_that_made_it(self) -> None:
        # b hands on h = 2x as it is, so its first output is a's: both see 5.
        handing = Composite((), ("x",), (), X)
        module = Composite((("a", TIMES), ("b", handing)), ("x",), (Call("h", "a", (X,)), Call("z", "b", (H,))), Z)
        e = expected(module, [CALLED, FROM_Y], {"a": 2}, x=1, v=5)
        assert self.seen(e) == {"net#0": 5, "net.a#0": 5, "net.b#0": 5}

    @pytest.mark.parametrize(
        ("order", "losses", "known"),
        [((1, 0), (V, W), None), ((1, 0), (V,), 5), ((0, 1), (V, W), 5), ((0, 1), (V,), 5)],
    )
    def test_an_output_of_which_torch_makes_an_earlier_one_has_what_comes_through_that(
        self, order: tuple[int, int], losses: tuple[Ref, ...], known: float | None
    ) -> None:
        # LSTMCell gives (h, c) with h = σ(o) tanh(c): the Node of c sees what comes through h too, that of h its own.
        cell = Call("h", "m0", (X,))
        module = Composite((("m0", LSTMCell(1, 1)),), ("x",), (cell,), pair(*(Ref("h", (i,)) for i in order)))
        main = (CALLED, Backward(tuple(Ref("y", (i,)) for i in range(len(losses))), losses))
        topology = Topology(module, (Input("x", (1, 1), True), *(Input(v.name, (1, 1)) for v in losses)), main)
        e = Expected(topology, {**values(topology), "v": np.array([[5.0]]), "w": np.array([[7.0]])})
        (seen,) = [due.gradient for due in e.of_first_output if due.call.path == ""]
        assert seen is not None
        if known is None:  # 5 of c itself, and 7 of h, whose slope is that of the tanh times what stands before it
            h, c = (float(t.array.item()) for t in e.trace.calls[-1].outputs_inside if t is not None)
            known = 5 + 7 * h / np.tanh(c) * (1 - np.tanh(c) ** 2)
        assert_close(seen.item(), known)

    def test_an_output_of_an_operation_is_known_beside_others(self) -> None:
        # Each half of x is a view of its own.
        halves = Composite((), ("x",), (Apply("h", Chunk(2, 0), (X,)),), pair(Ref("h", (1,)), Ref("h", (0,))))
        main = (CALLED, Backward((Ref("y", (0,)), Ref("y", (1,))), (V, W)))
        topology = Topology(halves, (Input("x", (2,), True), Input("v", (1,)), Input("w", (1,))), main)
        e = Expected(topology, {"x": np.ones(2), "v": np.array([5.0]), "w": np.array([7.0])})
        assert self.seen(e) == {"net#0": 5}

    def test_a_leaf_that_is_handed_through_has_no_node(self) -> None:
        e = expected(Composite((), ("x",), (), X), [CALLED, FROM_Y], {}, x=1, v=5)
        assert self.seen(e) == {}
        assert leaves(e) == {"x": 5}


class TestOrder:
    def before(self, e: Expected, first: str, second: str) -> bool:
        return bool(firing(e, second).earlier >> firing(e, first).node & 1)

    def test_consumers_fire_before_producers_and_children_before_the_input_side_of_their_parent(self) -> None:
        e = expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=7, v=5)
        order = ["net.b#0", "net.a#0", "net#0"]
        for i, first in enumerate(order):
            for second in order[i + 1 :]:
                assert self.before(e, first, second)
                assert not self.before(e, second, first)

    def test_on_its_output_side_a_parent_fires_before_its_children(self) -> None:
        # Only weights require grad, so the module fires when the gradient of its output is there.
        e = expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, grad="", x=7, v=5)
        for first, second in (("net#0", "net.b#0"), ("net.b#0", "net.a#0"), ("net#0", "net.a#0")):
            assert self.before(e, first, second)
            assert not self.before(e, second, first)

    def test_branches_beside_each_other_are_in_no_order(self) -> None:
        wide = net(Ref("s"), Call("h", "a", (X,)), Call("z", "b", (X,)), Apply("s", Add(), (H, Z)))
        e = expected(wide, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=1, v=5)
        assert not self.before(e, "net.a#0", "net.b#0")
        assert not self.before(e, "net.b#0", "net.a#0")
        assert self.before(e, "net.a#0", "net#0")
        assert self.before(e, "net.b#0", "net#0")

    def test_a_later_call_fires_before_the_earlier_one_that_it_consumes(self) -> None:
        twice = net(Z, Call("h", "a", (X,)), Call("z", "a", (H,)))
        e = expected(twice, [CALLED, FROM_Y], {"a": 3, "b": 1}, x=2, v=1)
        assert self.before(e, "net.a#1", "net.a#0")
        assert not self.before(e, "net.a#0", "net.a#1")

    def test_a_layer_that_a_leak_bypasses_puts_no_one_off(self) -> None:
        e = expected(LEAKING, [CALLED, Backward((LEAKED, Y), (W, V))], {"a": 2, "b": 3}, x=1, v=5, w=7)
        assert self.before(e, "net.b#0", "net.a#0")
        alone = expected(LEAKING, [CALLED, Backward((LEAKED,), (V,))], {"a": 2, "b": 3}, x=1, v=7)
        _, a, b = alone.trace.calls
        assert b.entry is not None
        assert not firing(alone, a.subject).earlier >> b.entry.index & 1
        assert self.before(alone, "net.a#0", "net#0")


def test_known_gradients_name_every_side_and_every_parameter_of_a_call() -> None:
    outer = Composite((("inner", CHAIN),), ("x",), (Call("z", "inner", (X,)),), Z)
    e = expected(outer, [CALLED, FROM_Y], {"inner.a": 2, "inner.b": 3}, x=7, v=5)
    known = {f.call.subject: e.known_gradients(f.call, f.backward) for f in e.firings}
    shown = {subject: {name: float(g.item()) for name, g in gradients.items()} for subject, gradients in known.items()}
    sides = {"input[0]": 30, "output[0]": 5}
    within = {"a.input[0]": 30, "a.output[0]": 15, "b.input[0]": 15, "b.output[0]": 5, "a.weight": 105, "b.weight": 70}
    deeper = {f"inner.{name}": gradient for name, gradient in {**sides, **within}.items()}
    assert shown["net.inner#0"] == {**sides, **within}
    assert shown["net#0"] == {**sides, **deeper}
    assert shown["net.inner.b#0"] == {"weight": 70, "input[0]": 15, "output[0]": 5}


def test_known_gradients_leave_out_what_is_absent() -> None:
    e = expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, grad="", frozen=("a.weight",), x=7, v=5)
    call = firing(e, "net#0").call
    assert {name: float(g.item()) for name, g in e.known_gradients(call, 0).items()} == {"b.weight": 70, "output[0]": 5}


def test_the_three_states_of_a_gradient() -> None:
    assert state(None) == "absent"
    assert state(np.zeros((2, 2))) == "zero"
    assert state(np.array([0.0, 1e-300])) == "value"


def test_a_firing_knows_what_the_passes_before_met_of_its_call() -> None:
    of_b = Backward((Y,), (V,), (Ref("net.b.weight"),), retain_graph=True)  # meets the root's outputs alone
    leaked = Backward((LEAKED,), (V,), retain_graph=True)  # meets its inputs alone
    e = expected(LEAKING, [CALLED, leaked, of_b, leaked, leaked], {"a": 2, "b": 3}, x=7, v=5)
    of_root = [(firing.backward, firing.met) for firing in e.firings if firing.call.path == ""]
    assert of_root == [(0, "nothing"), (2, "outputs alone"), (3, "both")]
