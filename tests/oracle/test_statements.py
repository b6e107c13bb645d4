"""What the newer statements and modules make hooks see, by hand: recursion, `torch.autograd.grad`, own parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.model import Apply, Backward, Call, Composite, Grad, Input, ParameterDict, Recurse, Topology
from hookcheck.topology.ops import Mul
from hookcheck.topology.tree import Literal, Pack, Ref

from .hand import CALLED, FROM_Y, TIMES, H, V, X, Y, expected, fired, firing, leaves, net

G, Z = Ref("g"), Ref("z")


def test_a_module_that_calls_itself_has_a_call_for_each_depth() -> None:
    # y = 2·2·2·x with v = 5: each depth sees 5 at its output, and at its input 2 for each level below it, itself too.
    module = net(Ref("r"), Call("h", "a", (X,)), Recurse("r", H, "depth"), takes=("x", "depth"))
    e = expected(module, [Call("y", "", (X, Literal(2))), FROM_Y], {"a": 2, "b": 1}, x=1, v=5)
    assert [call.subject for call in e.trace.calls] == ["net#0", "net.a#0", "net#1", "net.a#1", "net#2", "net.a#2"]
    assert fired(e) == {
        "net#0": ((40, None), (5,)),
        "net#1": ((20, None), (5,)),
        "net#2": ((10, None), (5,)),
        "net.a#0": ((40,), (20,)),
        "net.a#1": ((20,), (10,)),
        "net.a#2": ((10,), (5,)),
    }
    assert leaves(e) == {"x": 40, "a.weight": 60}  # 3·2²·x·v


class TestGrad:
    MAIN = (CALLED, Apply("z", Mul(), (Y, Y)))

    def gradients(self, e: Expected) -> list[Any]:
        return [None if g is None else float(g.array.item()) for g in e.trace.names["g"]]

    def test_it_leaves_the_gradients_of_leaves_alone_and_the_hook_fires(self) -> None:
        # y = 3x = 6, z = y²: dy = 12, dx = 36, dw = 24.
        main = (*self.MAIN, Grad("g", (Z,), (X, Ref("net.weight")), (V,)))
        e = expected(TIMES, main, {"": 3}, x=2, v=1)
        assert self.gradients(e) == [36, 24]
        assert fired(e) == {"net#0": ((36,), (12,))}
        assert leaves(e) == {}

    def test_asked_for_the_output_alone_the_module_is_not_entered(self) -> None:
        e = expected(TIMES, (*self.MAIN, Grad("g", (Z,), (Y,), (V,))), {"": 3}, x=2, v=1)
        assert self.gradients(e) == [12]
        assert fired(e) == {}

    def test_what_the_output_does_not_depend_on_is_none(self) -> None:
        e = expected(TIMES, (*self.MAIN, Grad("g", (Z,), (X, Ref("u")), (V,))), {"": 3}, grad="x u", x=2, v=1, u=7)
        assert self.gradients(e) == [36, None]

    def test_the_gradient_of_the_gradient(self) -> None:
        # z = (wx)²: dz/dx = 2w²x = 36; of that, d/dx = 2w² = 18 and d/dw = 4wx = 24.
        main = (*self.MAIN, Grad("g", (Z,), (X,), (V,), create_graph=True), Backward((Ref("g", (0,)),), (V,)))
        e = expected(TIMES, main, {"": 3}, x=2, v=1)
        assert self.gradients(e) == [36]
        assert sorted(leaves(e)) == ["weight", "x"]
        assert_close([leaves(e)["x"], leaves(e)["weight"]], [18, 24], doubled=True)

    def test_without_create_graph_it_is_a_constant(self) -> None:
        # p = 36·x, whose gradient is 36 and not 2·36 either.
        main = (*self.MAIN, Grad("g", (Z,), (X,), (V,)), Apply("p", Mul(), (Ref("g", (0,)), X)))
        e = expected(TIMES, (*main, Backward((Ref("p"),), (V,))), {"": 3}, x=2, v=1)
        assert leaves(e) == {"x": 36}


def test_own_parameters_are_leaves_and_no_inputs_of_the_call() -> None:
    # y = w·k·x with w = 3, k = 5, x = 2, and v = 7.
    body = (Apply("p", Mul(), (Ref("self.w"), X)), Apply("z", Mul(), (Ref("self.named.k"), Ref("p"))))
    module = Composite((("named", ParameterDict((("k", (1,)),))),), ("x",), body, Z, parameters=(("w", (1,)),))
    topology = Topology(module, (Input("x", (1,), True), Input("v", (1,))), (CALLED, FROM_Y))
    numbers = {name: np.array([n]) for name, n in {"w": 3.0, "named.k": 5.0, "x": 2.0, "v": 7.0}.items()}
    e = Expected(topology, numbers)
    assert fired(e) == {"net#0": ((105,), (7,))}
    assert leaves(e) == {"x": 105, "w": 70, "named.k": 42}
    assert {k: float(g.item()) for k, g in e.known_gradients(firing(e, "net#0").call, 0).items()} == {
        "input[0]": 105,
        "output[0]": 7,
    }


def given_in(kind: str, reached: Ref) -> Expected:
    """``h = 2x`` given back in a container alone, and ``v = 5`` on it."""
    module = net(Pack(kind, (H,), ("k",) if kind in ("namedtuple", "dataclass") else ()), Call("h", "a", (X,)))
    return expected(module, [CALLED, Backward((reached,), (V,))], {"a": 2, "b": 1}, x=1, v=5)


def test_a_namedtuple_is_joined_like_a_tuple() -> None:
    assert fired(given_in("namedtuple", Ref("y", (".k",)))) == {"net#0": ((10,), (5,)), "net.a#0": ((10,), (5,))}


def test_tensors_in_a_list_or_a_dataclass_are_no_outputs_so_the_hook_has_nothing_to_fire_for() -> None:
    for kind, reached in (("list", Ref("y", (0,))), ("dataclass", Ref("y", (".k",)))):
        e = given_in(kind, reached)
        assert e.trace.calls[0].exit is None
        assert fired(e) == {"net.a#0": ((10,), (5,))}
        assert leaves(e) == {"x": 10, "a.weight": 5}


def test_a_namedtuple_stays_one_behind_the_boundary() -> None:
    module = net(Pack("namedtuple", (H, Literal(1)), ("k", "m")), Call("h", "a", (X,)))
    e = expected(module, [CALLED], {"a": 2, "b": 1}, x=1)
    given: Any = e.trace.names["y"]
    assert given._fields == ("k", "m")
    assert given.k is given[0]
    assert given.k.node is e.trace.calls[0].exit
    assert given.m == 1
