"""What the oracle expects, against numbers worked out by hand. ``v`` is the cotangent of ``y`` throughout."""

from __future__ import annotations

import pytest

from hookcheck.hooks.acts import Acts
from hookcheck.oracle.gradient import state
from hookcheck.topology.layers.loss_margins import HingeEmbeddingLoss
from hookcheck.topology.model import Apply, Backward, Call, Composite, Grad, Leak, Sequential, Within
from hookcheck.topology.ops import Add, Mul
from hookcheck.topology.tree import Literal, Pack, Ref

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
    fired,
    firing,
    leaves,
    net,
    numbers,
    pair,
)

Z, W = Ref("z"), Ref("w")


def test_one_layer() -> None:
    # y = 3x at x = 2: dx = 5·3, dw = 5·2.
    e = expected(TIMES, [CALLED, FROM_Y], {"": 3}, x=2, v=5)
    assert fired(e) == {"net#0": ((15,), (5,))}
    assert leaves(e) == {"x": 15, "weight": 10}


def test_a_chain_passes_the_gradient_back_through_every_weight() -> None:
    # z = 3·2x at x = 7: at z 5, at h 5·3, at x 5·3·2; db = 5·h = 5·14, da = 15·7.
    e = expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=7, v=5)
    assert fired(e) == {"net#0": ((30,), (5,)), "net.a#0": ((30,), (15,)), "net.b#0": ((15,), (5,))}
    assert leaves(e) == {"x": 30, "b.weight": 70, "a.weight": 105}


def test_a_sequential_is_a_chain() -> None:
    e = expected(Sequential((TIMES, TIMES)), [CALLED, FROM_Y], {"0": 2, "1": 3}, x=7, v=5)
    assert fired(e) == {"net#0": ((30,), (5,)), "net.0#0": ((30,), (15,)), "net.1#0": ((15,), (5,))}


class TestSkipPaths:
    def test_a_path_around_a_layer_is_no_part_of_its_grad_input(self) -> None:
        # s = 3x + x: the layer sees 5·3, the whole module 5·3 + 5.
        residual = net(Ref("s"), Call("h", "a", (X,)), Apply("s", Add(), (H, X)))
        e = expected(residual, [CALLED, FROM_Y], {"a": 3, "b": 1}, x=2, v=5)
        assert fired(e) == {"net.a#0": ((15,), (5,)), "net#0": ((20,), (5,))}
        assert leaves(e) == {"x": 20, "a.weight": 10}

    def test_a_path_around_the_root_is_no_part_of_its_grad_input(self) -> None:
        # z = 3x + x in main: the module sees 5·3, the leaf 5·3 + 5.
        e = expected(TIMES, [CALLED, Apply("z", Add(), (Y, X)), Backward((Z,), (V,))], {"": 3}, x=2, v=5)
        assert fired(e) == {"net#0": ((15,), (5,))}
        assert leaves(e)["x"] == 20


class TestFanOut:
    def test_grad_output_is_the_total_over_all_consumers(self) -> None:
        # y = 3·2 = 6, p = y·y: dy = 6 + 6, dx = 12·3, dw = 12·2.
        e = expected(TIMES, [CALLED, Apply("p", Mul(), (Y, Y)), Backward((Ref("p"),), (V,))], {"": 3}, x=2, v=1)
        assert fired(e) == {"net#0": ((36,), (12,))}
        assert leaves(e) == {"x": 36, "weight": 24}

    def test_consumers_inside_and_outside_of_an_enclosing_module_count(self) -> None:
        # h = 2x goes to the layer b (times 3) and out of the module; v = 5 from z, w = 7 from h: dh = 5·3 + 7.
        both = net(pair(Z, H), Call("h", "a", (X,)), Call("z", "b", (H,)))
        main = [CALLED, Backward((Ref("y", (0,)), Ref("y", (1,))), (V, W))]
        e = expected(both, main, {"a": 2, "b": 3}, x=1, v=5, w=7)
        assert fired(e) == {"net.b#0": ((15,), (5,)), "net.a#0": ((44,), (22,)), "net#0": ((44,), (5, 7))}

    def test_an_input_that_is_used_twice_gathers_both_paths(self) -> None:
        # s = 2x + 3x: the module's input gets 5·2 + 5·3; each layer its own part.
        wide = net(Ref("s"), Call("h", "a", (X,)), Call("z", "b", (X,)), Apply("s", Add(), (H, Z)))
        e = expected(wide, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=1, v=5)
        assert fired(e) == {"net.a#0": ((10,), (5,)), "net.b#0": ((15,), (5,)), "net#0": ((25,), (5,))}


class TestLeaks:
    def test_a_loss_on_the_leak_alone_bypasses_the_outputs(self) -> None:
        # v = 7 on h = 2x: a sees 7 and 7·2; the module's output gets nothing, its input 14; b never runs.
        e = expected(LEAKING, [CALLED, Backward((LEAKED,), (V,))], {"a": 2, "b": 3}, x=1, v=7)
        assert fired(e) == {"net.a#0": ((14,), (7,)), "net#0": ((14,), (None,))}
        assert leaves(e) == {"x": 14, "a.weight": 7}

    def test_losses_on_leak_and_output_meet_inside(self) -> None:
        # w = 7 on h and v = 5 on z = 3h: dh = 7 + 5·3, dx = 22·2; the output boundary saw 5 only.
        e = expected(LEAKING, [CALLED, Backward((LEAKED, Y), (W, V))], {"a": 2, "b": 3}, x=1, v=5, w=7)
        assert fired(e) == {"net.b#0": ((15,), (5,)), "net.a#0": ((44,), (22,)), "net#0": ((44,), (5,))}

    def test_a_leak_from_deep_inside_bypasses_every_output_on_the_way(self) -> None:
        outer = Composite((("inner", LEAKING),), ("x",), (Call("z", "inner", (X,)),), Z)
        e = expected(outer, [CALLED, Backward((LEAKED,), (V,))], {"inner.a": 2, "inner.b": 3}, x=1, v=7)
        assert fired(e) == {
            "net.inner.a#0": ((14,), (7,)),
            "net.inner#0": ((14,), (None,)),
            "net#0": ((14,), (None,)),
        }

    def test_without_an_input_that_requires_grad_a_bypassed_module_does_not_fire(self) -> None:
        # The layer a fires on its output, since only its weight requires grad; the module's own output gets nothing.
        e = expected(LEAKING, [CALLED, Backward((LEAKED,), (V,))], {"a": 2, "b": 3}, grad="", x=1, v=7)
        assert fired(e) == {"net.a#0": ((None,), (7,))}

    def test_what_is_leaked_and_also_given_back_counts_past_the_output_only_where_it_was_given_back(self) -> None:
        # z = h is leaked inside and given back: w = 7 past the output, v = 5 through it.
        both = net(H, Call("h", "a", (X,)), Leak("h", H))
        e = expected(both, [CALLED, Backward((LEAKED, Y), (W, V))], {"a": 2, "b": 1}, x=1, v=5, w=7)
        assert fired(e) == {"net.a#0": ((24,), (12,)), "net#0": ((24,), (5,))}


class TestSeveralCalls:
    def test_each_call_has_gradients_of_its_own(self) -> None:
        # z = 3·3x at x = 2: the second call sees 1 and 3, the first 3 and 9; dw = 1·6 + 3·2.
        twice = net(Z, Call("h", "a", (X,)), Call("z", "a", (H,)))
        e = expected(twice, [CALLED, FROM_Y], {"a": 3, "b": 1}, x=2, v=1)
        assert fired(e) == {"net.a#1": ((3,), (1,)), "net.a#0": ((9,), (3,)), "net#0": ((9,), (1,))}
        assert leaves(e) == {"x": 9, "a.weight": 12}

    @pytest.mark.parametrize("tie", [("b", "a"), ("b.weight", "a.weight")])
    def test_a_tied_weight_gathers_from_both_uses(self, tie: tuple[str, str]) -> None:
        # The same program over two layers that are one, or hold one weight.
        e = expected(CHAIN, [CALLED, FROM_Y], {"a": 3}, ties=(tie,), x=2, v=1)
        assert leaves(e) == {"x": 9, "a.weight": 12}
        second = "net.a#1" if tie == ("b", "a") else "net.b#0"
        assert fired(e) == {second: ((3,), (1,)), "net.a#0": ((9,), (3,)), "net#0": ((9,), (1,))}

    def test_a_call_that_backward_does_not_reach_does_not_fire(self) -> None:
        e = expected(TIMES, [CALLED, Call("z", "", (X,)), Backward((Z,), (V,))], {"": 3}, x=2, v=5)
        assert fired(e) == {"net#1": ((15,), (5,))}


class TestPositions:
    def test_an_argument_without_grad_beside_one_with_grad_gets_zeros(self) -> None:
        # s = 3x + w with w plain data: joined by one boundary, w's entry is zero, not absent.
        two = net(Ref("s"), Call("h", "a", (X,)), Apply("s", Add(), (H, W)), takes=("x", "w"))
        e = expected(two, [Call("y", "", (X, W)), FROM_Y], {"a": 3, "b": 1}, x=2, w=4, v=5)
        assert fired(e)["net#0"] == ((15, 0), (5,))
        assert [state(g) for g in firing(e, "net#0").grad_input] == ["value", "zero"]
        assert leaves(e) == {"x": 15, "a.weight": 10}

    def test_arguments_keep_their_positions(self) -> None:
        # s = 3·x + 2·w: 5·3 for x and 5·2 for w, in the order of the call.
        two = net(Ref("s"), Call("h", "a", (X,)), Call("z", "b", (W,)), Apply("s", Add(), (H, Z)), takes=("w", "x"))
        e = expected(two, [Call("y", "", (W, X)), FROM_Y], {"a": 3, "b": 2}, grad="x w", x=1, w=1, v=5)
        assert fired(e)["net#0"] == ((10, 15), (5,))

    def test_an_argument_that_is_not_used_gets_zeros(self) -> None:
        two = net(H, Call("h", "a", (X,)), takes=("x", "w"))
        e = expected(two, [Call("y", "", (X, W)), FROM_Y], {"a": 3, "b": 1}, grad="x w", x=2, w=4, v=5)
        assert fired(e)["net#0"] == ((15, 0), (5,))
        assert "w" not in leaves(e)  # without hooks there is no boundary, hence no gradient at all

    def test_arguments_that_are_no_tensors_are_absent(self) -> None:
        three = net(H, Call("h", "a", (X,)), takes=("m", "x", "n", "many"))
        call = Call("y", "", (Literal(None), X, Literal(3), Pack("list", (X,))))
        e = expected(three, [call, FROM_Y], {"a": 3, "b": 1}, x=2, v=5)
        assert fired(e)["net#0"] == ((None, 15, None, None), (5,))

    def test_an_output_that_is_not_used_is_absent_and_its_makers_see_zeros(self) -> None:
        # Of (2x, 3x) only the first is used: the boundary of the outputs hands zeros on to the second.
        two = net(pair(H, Z), Call("h", "a", (X,)), Call("z", "b", (X,)))
        e = expected(two, [CALLED, Backward((Ref("y", (0,)),), (V,))], {"a": 2, "b": 3}, x=1, v=5)
        assert fired(e) == {"net.a#0": ((10,), (5,)), "net.b#0": ((0,), (0,)), "net#0": ((10,), (5, None))}
        assert [state(g) for g in firing(e, "net#0").grad_output] == ["value", "absent"]
        assert leaves(e) == {"x": 10, "a.weight": 5}  # without hooks nothing flows to b

    def test_outputs_keep_their_positions(self) -> None:
        two = net(pair(H, Z), Call("h", "a", (X,)), Call("z", "b", (X,)))
        main = [CALLED, Backward((Ref("y", (1,)), Ref("y", (0,))), (V, W))]
        e = expected(two, main, {"a": 2, "b": 3}, x=1, v=5, w=7)
        assert fired(e) == {"net.a#0": ((14,), (7,)), "net.b#0": ((15,), (5,)), "net#0": ((29,), (7, 5))}

    def test_outputs_that_are_no_tensors_are_absent(self) -> None:
        mixed = net(pair(Literal(None), H, Literal(3)), Call("h", "a", (X,)))
        e = expected(mixed, [CALLED, Backward((Ref("y", (1,)),), (V,))], {"a": 2, "b": 1}, x=1, v=5)
        assert fired(e)["net#0"] == ((10,), (None, 5, None))

    def test_an_output_without_grad_beside_one_with_grad_keeps_its_place(self) -> None:
        # w is plain data that is handed through.
        module = net(pair(W, H), Call("h", "a", (X,)), takes=("x", "w"))
        main = [Call("y", "", (X, W)), Backward((Ref("y", (1,)),), (V,))]
        e = expected(module, main, {"a": 2, "b": 1}, x=1, w=4, v=5)
        assert fired(e)["net#0"] == ((10, 0), (None, 5))


class TestKeywordArguments:
    KEYWORD = net(H, Call("h", "a", (X,)), takes=("x",), keywords=("x",))

    def test_a_keyword_argument_is_not_in_grad_input_and_the_hook_fires_early(self) -> None:
        e = expected(self.KEYWORD, [Call("y", "", (), (("x", X),)), FROM_Y], {"a": 3, "b": 1}, x=2, v=5)
        assert fired(e) == {"net#0": ((), (5,)), "net.a#0": ((15,), (5,))}
        assert firing(e, "net#0").early
        assert not firing(e, "net.a#0").early
        assert leaves(e) == {"x": 15, "a.weight": 10}

    def test_beside_a_positional_argument_only_that_has_an_entry(self) -> None:
        # s = 3w + x, with x by keyword: grad_input holds w's 5·3.
        two = net(Ref("s"), Call("h", "a", (W,)), Apply("s", Add(), (H, X)), takes=("w", "x"), keywords=("x",))
        e = expected(two, [Call("y", "", (W,), (("x", X),)), FROM_Y], {"a": 3, "b": 1}, grad="x w", x=2, w=4, v=5)
        assert fired(e)["net#0"] == ((15,), (5,))
        assert not firing(e, "net#0").early

    def test_a_layer_takes_its_tensor_by_keyword_too(self) -> None:
        e = expected(TIMES, [Call("y", "", (), (("input", X),)), FROM_Y], {"": 3}, x=2, v=5)
        assert fired(e) == {"net#0": ((), (5,))}
        assert leaves(e) == {"x": 15, "weight": 10}


class TestWithoutGrad:
    def test_with_plain_input_the_hook_fires_early_with_absent_grad_input(self) -> None:
        e = expected(TIMES, [CALLED, FROM_Y], {"": 3}, grad="", x=2, v=5)
        assert fired(e) == {"net#0": ((None,), (5,))}
        assert firing(e, "net#0").early
        assert leaves(e) == {"weight": 10}

    def test_inside_the_layer_after_a_trained_one_fires_on_its_input(self) -> None:
        e = expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, grad="", x=7, v=5)
        assert fired(e) == {"net#0": ((None,), (5,)), "net.b#0": ((15,), (5,)), "net.a#0": ((None,), (15,))}
        assert {f.call.subject: f.early for f in e.firings} == {"net#0": True, "net.a#0": True, "net.b#0": False}

    def test_a_frozen_module_on_plain_input_never_fires(self) -> None:
        e = expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, grad="", frozen=("a.weight",), x=7, v=5)
        assert fired(e) == {"net#0": ((None,), (5,)), "net.b#0": ((None,), (5,))}
        assert leaves(e) == {"b.weight": 70}

    def test_a_frozen_module_hands_the_gradient_on(self) -> None:
        e = expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, frozen=("a.weight", "b.weight"), x=7, v=5)
        assert fired(e) == {"net#0": ((30,), (5,)), "net.a#0": ((30,), (15,)), "net.b#0": ((15,), (5,))}
        assert leaves(e) == {"x": 30}

    @pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
    def test_evaluation_fires_nothing_and_only_the_training_call_counts(self, mode: str) -> None:
        main = [Within(mode, (CALLED,)), Call("z", "", (X,)), Backward((Z,), (V,))]
        e = expected(TIMES, main, {"": 3}, x=2, v=5)
        assert fired(e) == {"net#1": ((15,), (5,))}
        assert leaves(e) == {"x": 15, "weight": 10}

    def test_evaluation_alone_leaves_nothing(self) -> None:
        e = expected(TIMES, [Within("no_grad", (CALLED,))], {"": 3}, x=2)
        assert fired(e) == {}
        assert leaves(e) == {}

    def test_no_grad_inside_a_module_cuts_the_path(self) -> None:
        # z = 3·(2x) with 2x computed under no_grad: only b is in the graph.
        cut = net(Z, Within("no_grad", (Call("h", "a", (X,)),)), Call("z", "b", (H,)))
        e = expected(cut, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=7, v=5)
        assert fired(e) == {"net.b#0": ((None,), (5,))}
        assert leaves(e) == {"b.weight": 70}

    def test_enable_grad_inside_no_grad_brings_the_graph_back(self) -> None:
        # Only z = 3h is recorded, and h is plain: b fires early; the module's own call had no grad mode.
        inside = net(Z, Call("h", "a", (X,)), Within("enable_grad", (Call("z", "b", (H,)),)))
        e = expected(inside, [Within("no_grad", (CALLED,)), FROM_Y], {"a": 2, "b": 3}, x=7, v=5)
        assert fired(e) == {"net.b#0": ((None,), (5,))}
        assert leaves(e) == {"b.weight": 70}

    def test_enable_grad_around_a_call_on_x_reaches_x(self) -> None:
        inside = net(Z, Within("enable_grad", (Call("z", "b", (X,)),)))
        e = expected(inside, [Within("no_grad", (CALLED,)), FROM_Y], {"a": 2, "b": 3}, x=7, v=5)
        assert fired(e) == {"net.b#0": ((15,), (5,))}
        assert leaves(e) == {"b.weight": 35, "x": 15}


class TestSeveralBackwards:
    def test_gradients_accumulate_and_each_pass_fires(self) -> None:
        main = [CALLED, Backward((Y,), (V,), retain_graph=True), Backward((Y,), (W,))]
        e = expected(TIMES, main, {"": 3}, x=2, v=5, w=7)
        assert [(f.backward, numbers(f.grad_input), numbers(f.grad_output)) for f in e.firings] == [
            (0, (15,), (5,)),
            (1, (21,), (7,)),
        ]
        assert leaves(e) == {"x": 36, "weight": 24}

    def test_one_backward_from_two_roots_fires_once(self) -> None:
        main = [CALLED, Apply("p", Mul(), (Y, Y)), Backward((Y, Ref("p")), (V, W))]
        # dy = 5 + 7·(6 + 6), dx = 89·3.
        e = expected(TIMES, main, {"": 3}, x=2, v=5, w=7)
        assert fired(e) == {"net#0": ((267,), (89,))}

    def test_a_scalar_loss_starts_from_one(self) -> None:
        e = expected(TIMES, [CALLED, Backward((Y,))], {"": 3}, x=2)
        assert fired(e) == {"net#0": ((3,), (1,))}

    def test_asked_for_the_input_alone_no_weight_gets_a_gradient(self) -> None:
        e = expected(TIMES, [CALLED, Backward((Y,), (V,), inputs=(X,))], {"": 3}, x=2, v=5)
        assert fired(e) == {"net#0": ((15,), (5,))}
        assert leaves(e) == {"x": 15}

    def test_to_fill_the_grad_of_an_intermediate_the_step_that_made_it_runs_and_leads_nowhere(self) -> None:
        # y = 3x, z = y · w with w = 4: y.grad = 5 · 4; no gradient of x is computed, but a hook on y's Node is called.
        main = [CALLED, Apply("z", Mul(), (Y, W)), Backward((Ref("z"),), (V,), inputs=(Y,), out="g")]
        e = expected(TIMES, main, {"": 3}, x=2, w=4, v=5)
        assert fired(e) == {}
        assert [firing.call.path for firing in e.pre_firings] == [""]
        assert [due.gradient.tolist() for due in e.of_first_output if due.gradient is not None] == [[20]]
        assert leaves(e) == {}
        assert [t.array.tolist() for t in e.trace.names["g"]] == [[20]]

    def test_torch_grad_computes_the_gradient_of_an_intermediate_and_runs_no_step_for_it(self) -> None:
        main = [CALLED, Apply("z", Mul(), (Y, W)), Grad("g", (Ref("z"),), (Y,), (V,))]
        e = expected(TIMES, main, {"": 3}, x=2, w=4, v=5)
        assert (fired(e), list(e.pre_firings), list(e.of_first_output)) == ({}, [], [])
        assert [t.array.tolist() for t in e.trace.names["g"]] == [[20]]

    def test_asked_for_a_leaf_that_the_module_does_not_lead_to_nothing_fires(self) -> None:
        # z = 3x · w: only w is asked for, so backward does not enter the module.
        main = [CALLED, Apply("z", Mul(), (Y, W)), Backward((Z,), (V,), inputs=(W,))]
        e = expected(TIMES, main, {"": 3}, grad="x w", x=2, w=4, v=5)
        assert fired(e) == {}
        assert leaves(e) == {"w": 30}


class TestWhereHooksActOnWhatIsNotWorkedOut:
    """Nothing is traced for that: what a formula is not for need not even be computed."""

    def test_a_gradient_that_is_differentiated(self) -> None:
        main = [
            CALLED,
            Grad("g", (Y,), (X,), (V,), create_graph=True),
            Backward((Ref("g", (0,)),), (W,)),
        ]
        plain = expected(TIMES, main, {"": 3}, grad="x v", x=2, v=5, w=7)
        assert plain.trace.doubled
        acting = plain.acting(Acts(grad_input=True))
        assert not acting.worked_out
        assert acting.trace.nodes is plain.trace.nodes

    def test_an_argument_that_leaves_its_domain(self) -> None:
        main = [Call("y", "", (X, Ref("t"))), FROM_Y]
        acting = expected(HingeEmbeddingLoss(), main, {}, x=2, t=1, v=5).acting(Acts(args=True))
        assert not acting.worked_out
        assert "trace" not in vars(acting)
