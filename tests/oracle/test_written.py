"""What do hooks on an output get that is written to later, and what does it retain? By hand, by the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from hookcheck.oracle.expected import Expected
from hookcheck.topology.last_node import LATEST, Release
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Module, Statement, Topology, Within
from hookcheck.topology.ops.arithmetic import Add
from hookcheck.topology.ops.elementwise import Scale, Shift
from hookcheck.topology.ops.inplace import MulInplace, ScaleInplace
from hookcheck.topology.ops.joining import Chunk
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
    calls = (call for call in expected.of_first_output if call.call.path == "m")
    of_legacy = [None if call.gradient is None else call.gradient.ravel().tolist() for call in calls]
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


ADDING_ONE = Composite((), ("x",), (Apply("h", Shift(1.0), (X,)),), H)
HALVING = Composite((), ("x",), (Apply("h", Chunk(2, 0), (X,)),), H)


def handed_on(topology: Topology, path: str, numbers: Mapping[str, Any]) -> list[list[Any]]:
    """What the hook of the module there is given as grad_input, in each form that its Node may have."""
    given = {name: np.array(array, float) for name, array in numbers.items()}
    (due,) = (c for c in Expected(topology, given).of_first_output if c.call.path == path)
    return [[None if gradient is None else gradient.tolist() for gradient in form] for form in due.forms]


def test_a_base_that_was_written_to_through_a_view_hands_on_what_the_write_does() -> None:
    """h = x + 1, of which the first row is multiplied by u: dh = v there times u and below v alone, du = v times h."""
    body = (
        Call("h", "m", (X,)), Apply("r", Select(0, 0), (H,)), Apply("z", MulInplace(), (Ref("r"), Ref("u"))),
    )  # fmt: skip
    net = Composite((("m", ADDING_ONE),), ("x", "u"), body, H)
    inputs = (Input("x", (2, 2), True), Input("u", (2,), True), Input("v", (2, 2)))
    topology = Topology(net, inputs, (Call("y", "", (X, Ref("u"))), Backward((Y,), (V,))))
    numbers = {"x": [[1, 2], [3, 4]], "u": [5, 6], "v": [[1, 10], [100, 1000]]}
    assert handed_on(topology, "", numbers) == [[[[5, 60], [100, 1000]], [2, 30]]]
    # The Node that h had before has the same gradient: the write goes on from there.
    assert handed_on(topology, "m", numbers) == [[[[5, 60], [100, 1000]], None]]


def test_of_several_outputs_of_a_node_the_first_may_have_no_gradient() -> None:
    net = Composite((("m", HALVING),), ("x",), (Call("h", "m", (X,)),), Ref("h", (1,)))
    topology = Topology(net, (Input("x", (4,), True), Input("v", (2,))), (Call("y", "", (X,)), Backward((Y,), (V,))))
    numbers = {"x": np.ones(4), "v": np.array([1.0, 10.0])}
    (due,) = (c for c in Expected(topology, numbers).of_first_output if c.call.path == "m")
    assert due.gradient is None
    assert due.absent
    assert due.known
    assert handed_on(topology, "m", numbers) == [[[0, 0, 1, 10]]]
