"""What writing in place does to values and gradients: by hand, and as torch has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.graph import Tensor
from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.build import build
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Statement, Topology, Within
from hookcheck.topology.ops import Add, Mul, Sum
from hookcheck.topology.ops.elementwise import Scale
from hookcheck.topology.ops.inplace import AddInplace, CopyInplace, MulInplace, ReLUInplace, ScaleInplace, ZeroInplace
from hookcheck.topology.ops.moving import Clone
from hookcheck.topology.ops.reduction import SumOver
from hookcheck.topology.ops.views import Detach, Expand, Index, Narrow, Select, Transpose, View
from hookcheck.topology.primitive import Op
from hookcheck.topology.tree import Ref

NUMBERS = {
    "x": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
    "u": np.array([7.0, 8.0, 9.0]),
    "v": np.array([[1.0, 10.0, 100.0], [1e3, 1e4, 1e5]]),
}


def step(out: str, op: Op, *args: str) -> Apply:
    """``out = op(*args)``; ``"a.0"`` is ``a[0]``."""
    named = (arg.partition(".") for arg in args)
    return Apply(out, op, tuple(Ref(name, (int(place),) if place else ()) for name, _, place in named))


def program(*body: Statement, result: str = "y") -> Topology:
    """``body`` over a fresh copy ``a`` of ``x`` and over ``u``, both of which require grad, and a backward by ``v``."""
    main = (step("a", Clone(), "x"), *body, step("p", Mul(), result, "v"), step("l", Sum(), "p"))
    inputs = (Input("x", (2, 3), True), Input("u", (3,), True), Input("v", (2, 3)))
    return Topology(Composite((), (), (), Ref("x")), inputs, (*main, Backward((Ref("l"),))))


def expected(topology: Topology) -> Expected:
    return Expected(topology, NUMBERS)


def value(e: Expected, name: str) -> Any:
    """What ``name`` holds at the end of the program."""
    tensor = e.trace.names[name]
    while isinstance(tensor, Tensor) and tensor.newer is not None:
        tensor = tensor.newer
    assert isinstance(tensor, Tensor)
    return tensor.array.tolist()


class TestByHand:
    def test_what_is_written_to_a_view_is_seen_in_its_base(self) -> None:
        # The second row of a is multiplied by u.
        e = expected(program(step("b", Select(0, 1), "a"), step("c", MulInplace(), "b", "u"), result="a"))
        assert value(e, "a") == [[1, 2, 3], [28, 40, 54]]
        # dx: v above, v·u below; du: v·x of the second row.
        assert e.leaf_gradients["x"].tolist() == [[1, 10, 100], [7e3, 8e4, 9e5]]
        assert e.leaf_gradients["u"].tolist() == [4e3, 5e4, 6e5]

    def test_what_is_written_to_the_base_is_seen_in_its_view(self) -> None:
        # The view b of the first row, used after a has become 3a: y = a + b, the row added to both.
        body = (step("b", Select(0, 0), "a"), step("c", ScaleInplace(3.0), "a"), step("y", Add(), "a", "b"))
        e = expected(program(*body))
        assert value(e, "b") == [3, 6, 9]
        assert value(e, "y") == [[6, 12, 18], [15, 21, 27]]
        # dx below: 3v; above: 3 times v of both rows and v of its own again.
        assert e.leaf_gradients["x"].tolist() == [[3 * 1002, 3 * 10020, 3 * 100200], [3e3, 3e4, 3e5]]

    def test_what_is_written_to_one_view_is_seen_in_another_that_overlaps(self) -> None:
        # b is the left two columns, c the right two; b becomes 0, so the middle column of c does too.
        body = (step("b", Narrow(1, 0, 2), "a"), step("c", Narrow(1, 1, 2), "a"), step("d", ZeroInplace(), "b"))
        e = expected(program(*body, result="a"))
        assert value(e, "c") == [[0, 3], [0, 6]]
        assert e.leaf_gradients["x"].tolist() == [[0, 0, 100], [0, 0, 1e5]]

    def test_a_view_of_a_view_leads_to_the_same_base(self) -> None:
        # The last of the six elements, reached by transposing and by selecting twice, becomes twice itself.
        body = (
            step("b", Transpose(0, 1), "a"), step("c", Select(0, 2), "b"), step("d", Select(0, 1), "c"),
            step("e", ScaleInplace(2.0), "d"),
        )  # fmt: skip
        e = expected(program(*body, result="a"))
        assert value(e, "a") == [[1, 2, 3], [4, 5, 12]]
        assert value(e, "b") == [[1, 4], [2, 5], [3, 12]]
        assert e.leaf_gradients["x"].tolist() == [[1, 10, 100], [1e3, 1e4, 2e5]]

    def test_what_was_computed_before_keeps_the_old_numbers(self) -> None:
        # y = a + u before a is doubled: the sum is of old numbers, its gradient v alone.
        body = (step("y", Add(), "a", "u"), step("b", ScaleInplace(2.0), "a"))
        e = expected(program(*body))
        assert value(e, "y") == [[8, 10, 12], [11, 13, 15]]
        assert value(e, "a") == [[2, 4, 6], [8, 10, 12]]
        assert e.leaf_gradients["x"].tolist() == NUMBERS["v"].tolist()

    def test_a_tensor_that_requires_no_grad_requires_it_once_it_holds_one_that_does(self) -> None:
        # The plain w gets u as its second row: of v there, u has the gradient.
        body = (step("w", Clone(), "v"), step("b", Select(0, 1), "w"), step("c", CopyInplace(), "b", "u"))
        e = expected(program(*body, result="w"))
        assert value(e, "w") == [[1, 10, 100], [7, 8, 9]]
        assert {name: g.tolist() for name, g in e.leaf_gradients.items()} == {"u": [1e3, 1e4, 1e5]}

    def test_a_copy_is_no_view(self) -> None:
        body = (step("b", Clone(), "a"), step("c", ZeroInplace(), "b"))
        e = expected(program(*body, result="a"))
        assert value(e, "a") == NUMBERS["x"].tolist()
        assert e.leaf_gradients["x"].tolist() == NUMBERS["v"].tolist()

    def test_a_write_to_a_part_of_an_output_is_one_of_those_who_consume_it(self) -> None:
        # The module gives 2x; then the first row of that is multiplied by u, and all of it is asked for.
        doubled = Composite((), ("x",), (Apply("y", Scale(2.0), (Ref("x"),)),), Ref("y"))
        body = (Call("h", "", (Ref("a"),)), step("b", Select(0, 0), "h"), step("c", MulInplace(), "b", "u"))
        (firing,) = expected(replace(program(*body, result="h"), module=doubled)).firings
        (grad_input,), (grad_output,) = firing.grad_input, firing.grad_output
        assert grad_output is not None
        assert grad_output.tolist() == [[7, 80, 900], [1e3, 1e4, 1e5]]
        assert grad_input is not None
        assert grad_input.tolist() == [[14, 160, 1800], [2e3, 2e4, 2e5]]


PROGRAMS = {
    "view, in place on it, base used": (
        step("b", View((6,)), "a"), step("c", ScaleInplace(-1.5), "b"), step("y", Mul(), "a", "u"),
    ),
    "view, in place on the base, view used": (
        step("b", Transpose(0, 1), "a"), step("c", AddInplace(), "a", "u"), step("d", ReLUInplace(), "a"),
        step("e", Transpose(0, 1), "b"), step("y", Mul(), "e", "a"),
    ),
    "in place twice on different views": (
        step("b", Narrow(1, 0, 2), "a"), step("c", Narrow(1, 1, 2), "a"), step("d", ScaleInplace(2.0), "b"),
        step("e", ScaleInplace(3.0), "c"), step("f", Add(), "a", "u"), step("y", Add(), "f", "a"),
    ),
    "a view made before and a view made after": (
        step("b", Select(1, 0), "a"), step("c", MulInplace(), "a", "u"), step("d", Select(1, 0), "a"),
        step("e", Add(), "b", "d"), step("f", SumOver((0,), False), "e"), step("y", Add(), "a", "f"),
    ),
    "in place on a view of a view": (
        step("b", Index(((None, None, None), (None, None, 2))), "a"), step("c", Select(0, 1), "b"),
        step("d", ScaleInplace(5.0), "c"), step("y", Add(), "a", "u"),
    ),
    "a view read through a copy that is expanded": (
        step("b", Select(0, 1), "a"), step("c", AddInplace(), "b", "u"), step("d", Expand((2, 3)), "b"),
        step("y", Add(), "d", "a"),
    ),
    "in place on a plain tensor that is given one with grad": (
        step("w", Clone(), "v"), step("b", Select(0, 0), "w"), step("c", AddInplace(), "b", "u"),
        step("d", MulInplace(), "w", "u"), step("y", Add(), "w", "a"),
    ),
    "under no_grad": (
        step("b", Select(0, 1), "a"),
        Within("no_grad", (step("c", ScaleInplace(2.0), "b"),)),
        step("y", Add(), "a", "u"),
    ),
    "the part that is detached": (
        step("b", Detach(), "a"), step("c", Clone(), "b"), step("d", MulInplace(), "c", "u"),
        step("y", Add(), "c", "a"),
    ),
}  # fmt: skip
"""Programs over ``a``, a copy of ``x``, that end in a ``y`` of its shape."""


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_as_torch_has_it(body: tuple[Statement, ...]) -> None:
    topology = program(*body)
    built = build(topology, NUMBERS)
    names = built.run()
    e = expected(topology)
    for name in (s.out for s in topology.main if isinstance(s, Apply)):
        assert_close(names[name].detach().numpy(), value(e, name))
    observed = {name: t.grad.numpy() for name, t in built.inputs.items() if t.grad is not None}
    assert observed.keys() == e.leaf_gradients.keys()
    for name, gradient in observed.items():
        assert_close(gradient, e.leaf_gradients[name])
