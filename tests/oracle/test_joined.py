"""Gradients that only joined boundaries make: which firings are not certain, and which entries may be None or zero."""

from __future__ import annotations

from hookcheck.oracle.expected import Expected
from hookcheck.topology.model import Apply, Backward, Call, Composite, Module
from hookcheck.topology.ops import Add
from hookcheck.topology.tree import Literal, Ref

from .hand import CALLED, CHAIN, FROM_Y, LEAKED, LEAKING, TIMES, H, V, X, expected, fired, net, pair

Z = Ref("z")
TWO = net(pair(H, Z), Call("h", "a", (X,)), Call("z", "b", (X,)))
FROM_FIRST = Backward((Ref("y", (0,)),), (V,))


def doubts(e: Expected) -> dict[str, tuple[bool, set[int]]]:
    """For each firing: whether it is certain, and its open places."""
    return {f.call.subject: (f.certain, set(f.open)) for f in e.firings}


def around(inner: Module, *gives: Ref) -> Composite:
    """``a`` on one way, ``inner`` on the other, and both given back."""
    body = (Call("h", "a", (X,)), Call("z", "inner", (X,)))
    return Composite((("a", TIMES), ("inner", inner)), ("x",), body, pair(*gives))


def test_nothing_is_in_doubt_where_every_output_is_used() -> None:
    e = expected(CHAIN, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=1, v=5)
    assert doubts(e) == {"net#0": (True, set()), "net.a#0": (True, set()), "net.b#0": (True, set())}


def test_what_made_the_unused_of_two_outputs_fires_if_at_all_on_zero_or_none() -> None:
    # y = (2x, 3x), the loss of the first alone: b gets zeros from the joined boundary, or nothing.
    e = expected(TWO, [CALLED, FROM_FIRST], {"a": 2, "b": 3}, x=1, v=5)
    assert doubts(e) == {"net#0": (True, set()), "net.a#0": (True, set()), "net.b#0": (False, {0})}
    assert fired(e)["net.b#0"] == ((0,), (0,))
    assert fired(e)["net#0"] == ((10,), (5, None))


def test_an_inner_module_behind_the_unused_output_and_all_in_it_is_in_doubt() -> None:
    e = expected(around(CHAIN, H, Z), [CALLED, FROM_FIRST], {"a": 2, "inner.a": 3, "inner.b": 4}, x=1, v=5)
    assert doubts(e) == {
        "net#0": (True, set()),
        "net.a#0": (True, set()),
        "net.inner#0": (False, {0}),
        "net.inner.a#0": (False, {0}),
        "net.inner.b#0": (False, {0}),
    }


def test_of_an_inner_pair_behind_an_unused_output_the_used_one_stays_certain() -> None:
    # inner gives (h, z), and so does the outer module; the loss is of h alone.
    body = (Call("p", "inner", (X,)),)
    outer = Composite((("inner", TWO),), ("x",), body, pair(Ref("p", (0,)), Ref("p", (1,))))
    e = expected(outer, [CALLED, FROM_FIRST], {"inner.a": 2, "inner.b": 3}, x=1, v=5)
    assert doubts(e) == {
        "net#0": (True, set()),
        "net.inner#0": (True, {1}),
        "net.inner.a#0": (True, set()),
        "net.inner.b#0": (False, {0}),
    }
    # The outer boundary hands zeros for the second place; without it there would be None.
    assert fired(e)["net.inner#0"] == ((10,), (5, 0))


def test_what_also_leads_to_the_loss_another_way_is_certain_with_its_real_gradient() -> None:
    # z = b(h) is unused, but h itself is used: a's gradient 5 comes for sure, b's zero adds nothing.
    both = net(pair(H, Z), Call("h", "a", (X,)), Call("z", "b", (H,)))
    e = expected(both, [CALLED, FROM_FIRST], {"a": 2, "b": 3}, x=1, v=5)
    assert doubts(e) == {"net#0": (True, set()), "net.a#0": (True, set()), "net.b#0": (False, {0})}
    assert fired(e)["net.a#0"] == ((10,), (5,))


def test_positions_are_those_of_the_outputs_with_what_is_no_tensor_among_them() -> None:
    # inner gives (None, h, z): the open place of z is the third.
    inner = net(pair(Literal(None), H, Z), Call("h", "a", (X,)), Call("z", "b", (X,)))
    outer = Composite((("inner", inner),), ("x",), (Call("p", "inner", (X,)),), pair(Ref("p", (1,)), Ref("p", (2,))))
    e = expected(outer, [CALLED, FROM_FIRST], {"inner.a": 2, "inner.b": 3}, x=1, v=5)
    assert doubts(e)["net.inner#0"] == (True, {2})
    assert fired(e)["net.inner#0"] == ((10,), (None, 5, 0))


def test_an_argument_that_joins_with_one_that_has_a_gradient_puts_its_maker_in_doubt() -> None:
    # c(h, z) = 2h: the boundary of c's inputs joins z, so b gets zeros or nothing.
    first = Composite((), ("p", "q"), (Apply("s", Add(), (Ref("p"), Ref("p"))),), Ref("s"))
    body = (Call("h", "a", (X,)), Call("z", "b", (X,)), Call("s", "c", (H, Z)))
    module = Composite((("a", TIMES), ("b", TIMES), ("c", first)), ("x",), body, Ref("s"))
    e = expected(module, [CALLED, FROM_Y], {"a": 2, "b": 3}, x=1, v=5)
    assert doubts(e)["net.b#0"] == (False, {0})
    assert doubts(e)["net.c#0"] == doubts(e)["net.a#0"] == (True, set())
    assert fired(e)["net.c#0"] == ((10, 0), (5,))


def test_a_leak_past_the_outputs_leaves_nothing_in_doubt() -> None:
    # None for the output that the loss bypasses is no matter of joining.
    e = expected(LEAKING, [CALLED, Backward((LEAKED,), (V,))], {"a": 2, "b": 3}, x=1, v=7)
    assert doubts(e) == {"net.a#0": (True, set()), "net#0": (True, set())}


def test_doubt_is_a_matter_of_each_pass() -> None:
    main = [CALLED, Backward((Ref("y", (0,)),), (V,), retain_graph=True), Backward((Ref("y", (1,)),), (V,))]
    e = expected(TWO, main, {"a": 2, "b": 3}, x=1, v=5)
    certainty = {(f.backward, f.call.subject): f.certain for f in e.firings}
    assert certainty[0, "net.a#0"]
    assert not certainty[0, "net.b#0"]
    assert not certainty[1, "net.a#0"]
    assert certainty[1, "net.b#0"]
