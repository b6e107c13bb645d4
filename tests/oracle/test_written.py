"""What do hooks on an output get that is written to later, and what does it retain? By hand, for each release's rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hookcheck.oracle.expected import Expected
from hookcheck.topology.last_node import LATEST, Release
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Module, Statement, Topology, Within
from hookcheck.topology.ops.arithmetic import Add
from hookcheck.topology.ops.elementwise import Scale
from hookcheck.topology.ops.inplace import ScaleInplace
from hookcheck.topology.ops.views import Select, Transpose
from hookcheck.topology.tree import Ref

X, Y, V, H, R = (Ref(name) for name in "xyvhr")
TRIPLED = Composite((), ("x",), (Apply("h", Scale(3.0), (X,)),), H)
TURNED = Composite((), ("x",), (Apply("a", Scale(1.0), (X,)), Apply("h", Transpose(1, 2), (Ref("a"),))), H)
LINEAR = Linear(1, 1)
DOUBLED = Apply("w", ScaleInplace(2.0), (H,))
GRADIENT = [[[1.0]], [[10.0]]]


def gradients(module: Module, *body: Statement, release: Release = LATEST, gives: Ref = H) -> tuple[Any, Any]:
    """Those that hooks on the output ``h`` of ``module`` get, and what it retains, where ``body`` comes after the call;
    1 and 10 are the gradients of what the network gives."""
    net = Composite((("m", module),), ("x",), (Call("h", "m", (X,)), *body), gives)
    inputs = (Input("x", (2, 1, 1), True), Input("v", (2, 1, 1)))
    numbers = {"x": np.ones((2, 1, 1)), "v": np.array(GRADIENT), "m.weight": np.array([[3.0]]), "m.bias": np.zeros(1)}
    expected = Expected(Topology(net, inputs, (Call("y", "", (X,)), Backward((Y,), (V,)))), numbers, release=release)
    due, retained = (
        [None if call.gradient is None else call.gradient.ravel().tolist() for call in calls if call.name == "m[0]"]
        for calls in (expected.output_calls, expected.retained)
    )
    of_legacy = [g.ravel().tolist() for g in (c.gradient for c in expected.of_first_output if c.call.path == "m")]
    assert of_legacy == due
    return due, retained


def test_a_hook_gets_the_gradient_of_what_was_and_retained_is_that_of_what_is() -> None:
    assert gradients(TRIPLED, DOUBLED) == ([[2, 20]], [[1, 10]])
    assert gradients(TRIPLED, DOUBLED, Apply("w", ScaleInplace(5.0), (H,))) == ([[10, 100]], [[1, 10]])


def test_the_node_of_a_view_gets_nothing_of_what_comes_after_a_write() -> None:
    assert gradients(TURNED, DOUBLED) == ([], [[1, 10]])


def test_the_node_of_a_view_gets_the_gradients_of_what_used_it_before() -> None:
    before = Apply("u", Scale(7.0), (H,))
    after = Apply("s", Add(), (Ref("u"), H))
    assert gradients(TURNED, before, DOUBLED, after, gives=Ref("s")) == ([[7, 70]], [[1, 10]])


def test_a_write_through_a_view_leads_to_the_node_of_its_base() -> None:
    """The first row is doubled by way of a view; the Node that h had has the gradient of all that it was."""
    body = (Apply("r", Select(0, 0), (H,)), Apply("w", ScaleInplace(2.0), (R,)))
    assert gradients(TRIPLED, *body) == ([[2, 10]], [[1, 10]])


@pytest.mark.parametrize(
    ("release", "view"), [((1, 11), False), ((1, 12), True), ((2, 14), True), ((2, 15), False)], ids=str
)
def test_a_linear_layer_of_sequences_gives_a_view_in_some_releases(release: Release, view: bool) -> None:
    assert gradients(LINEAR, DOUBLED, release=release) == ([] if view else [[2, 20]], [[1, 10]])
    before = (Apply("u", Scale(7.0), (H,)), DOUBLED, Apply("s", Add(), (Ref("u"), H)))
    assert gradients(LINEAR, *before, release=release, gives=Ref("s")) == (
        [[7, 70] if view else [9, 90]],
        [[1, 10]],
    )


@pytest.mark.parametrize("module", [TRIPLED, TURNED, LINEAR], ids=["no view", "a view", "a view inside"])
def test_a_view_has_another_node_after_a_write_that_autograd_does_not_follow(module: Module) -> None:
    due, retained = gradients(module, Within("no_grad", (DOUBLED,)), release=(2, 13))
    assert due == ([[1, 10]] if module is TRIPLED else [])
    assert retained == [[1, 10]]


def test_what_may_be_a_view_or_not_is_not_known() -> None:
    """Whether the input of the layer is contiguous, nobody knows: it is the result of a step."""
    inside = Composite((("fc", LINEAR),), ("x",), (Apply("a", Scale(1.0), (X,)), Call("h", "fc", (Ref("a"),))), H)
    net = Composite((("m", inside),), ("x",), (Call("h", "m", (X,)), DOUBLED), H)
    topology = Topology(
        net, (Input("x", (2, 1, 1), True), Input("v", (2, 1, 1))), (Call("y", "", (X,)), Backward((Y,), (V,)))
    )
    numbers = {"x": np.ones((2, 1, 1)), "v": np.array(GRADIENT)}
    numbers |= {"m.fc.weight": np.array([[3.0]]), "m.fc.bias": np.zeros(1)}
    expected = Expected(topology, numbers, release=(2, 13))
    assert {call.unknown for call in expected.output_calls if call.name == "m[0]"} == {True}
    assert {call.known for call in expected.of_first_output if call.call.path == "m"} == {False}
