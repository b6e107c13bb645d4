"""How is the legacy hook judged as the hook on a Node? Which event goes with which call, and how much is not judged."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import RAN
from hookcheck.hooks.kinds import KINDS
from hookcheck.networks.case import Case
from hookcheck.networks.examine import examine
from hookcheck.networks.legacy import AS_THE_NODE, BUT_FOR_NUMBERS, NOT_JUDGED, OTHERWISE, answers
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.graph import CallTrace
from hookcheck.oracle.last_node import NodeCall
from hookcheck.oracle.tolerance import within
from hookcheck.probe.observation import Event
from hookcheck.probe.run import observe
from hookcheck.suite import conformance_folder
from hookcheck.topology.contexts import WRAPPING
from hookcheck.topology.corpus import read
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.layers.activation import Tanh
from hookcheck.topology.layers.cells import LSTMCell
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.normalisation import RMSNorm
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Topology, inside
from hookcheck.topology.ops.contraction import Einsum
from hookcheck.topology.ops.elementwise import Shift
from hookcheck.topology.ops.moving import To
from hookcheck.topology.primitive import Array, Layer
from hookcheck.topology.tree import Pack, Ref
from hookcheck.topology.values import values

from .cases import X, case, changed, gaps, judged, numbers, raising, unjudged, with_gradients

LEGACY = case(Tanh(), kind="backward")
"""A layer of one Node, whose own gradient is the module's."""
OF_NUMBERS = case(Composite((), ("x",), (Apply("h", Shift(1.0), (X,)),), Ref("h")), kind="backward")
"""The last Node adds a number, for which there is a place without a gradient."""
EINSUM = Composite((), ("x",), (Apply("h", Einsum("a,a->a"), (X, X)),), Ref("h"))

CALL = CallTrace("", 0, Tanh(), "grad")


def due(output: float, *handed_on: float, certain: bool = True) -> NodeCall:
    forms = (tuple(np.array([g], float) for g in handed_on),) if handed_on else ()
    return NodeCall(CALL, 0, np.array([output], float), forms, certain)


def event(output: float, *inputs: float) -> Event:
    return given(tuple(np.array([g], float) for g in inputs), (np.array([output], float),))


def given(*arguments: tuple[Any, ...]) -> Event:
    return Event("backward", "", 0, "", arguments)


def equal(a: Array, b: Array) -> bool:
    return bool(np.array_equal(a, b))


def near(a: Array, b: Array) -> bool:
    return within(a, b, 0.5)


@pytest.mark.parametrize(
    ("calls", "events", "room", "word"),
    [
        ([due(1, 2)], [event(1, 2)], 0, AS_THE_NODE),
        ([], [], 0, AS_THE_NODE),
        ([due(1, 2), due(3, 4)], [event(3, 4), event(1, 2)], 0, AS_THE_NODE),
        ([due(1, 2)], [event(1, 7)], 0, BUT_FOR_NUMBERS),
        ([due(1, 2)], [event(7, 2)], 0, BUT_FOR_NUMBERS),
        ([due(1, 2)], [event(1, 2, 2)], 0, OTHERWISE),
        ([due(1, 2)], [], 0, OTHERWISE),
        ([due(1, 2)], [event(1, 2), event(1, 2)], 0, OTHERWISE),
        ([], [event(1, 2)], 0, OTHERWISE),
        ([due(1)], [event(1, 2)], 0, NOT_JUDGED),
        ([due(1)], [event(1, 2), event(3, 4)], 0, OTHERWISE),
        ([due(1), due(3, 4)], [event(3, 7), event(1, 2)], 0, BUT_FOR_NUMBERS),
        ([due(1, 2)], [event(1, 2), event(3, 4)], 1, NOT_JUDGED),
        ([due(1, 2)], [event(1, 7), event(3, 4)], 1, BUT_FOR_NUMBERS),
        ([due(1, 2), due(3, 4, certain=False)], [event(1, 2)], 1, NOT_JUDGED),
        ([due(1, 2), due(3, 4, certain=False)], [event(1, 2), event(5, 6)], 1, NOT_JUDGED),
        ([due(1, 2), due(3, 4, certain=False)], [event(1, 2), event(3, 4)], 1, AS_THE_NODE),
        ([due(1, 2), due(3, 4, certain=False)], [event(1, 2), event(3, 4), event(3, 4)], 1, OTHERWISE),
    ],
)
def test_a_hook_is_called_as_the_node_is_or_not(
    calls: list[NodeCall], events: list[Event], room: int, word: str
) -> None:
    assert answers(calls, events, [equal], room, ended=False).word == word


ONE, TWO = np.array([1.0]), np.array([2.0])
OF_TWO = replace(due(1, 2), slot=1, outputs=2)
"""A Node with two outputs, of which the second is the module's."""


@pytest.mark.parametrize(
    ("call", "seen", "word"),
    [
        (due(1, 2), given((TWO,), (ONE, None)), OTHERWISE),
        (due(1, 2), given((TWO,), (None, ONE)), OTHERWISE),
        (OF_TWO, given((TWO,), (None, ONE)), AS_THE_NODE),
        (OF_TWO, given((TWO,), (TWO, ONE)), AS_THE_NODE),
        (OF_TWO, given((TWO,), (ONE, None)), OTHERWISE),
        (OF_TWO, given((TWO,), (ONE,)), OTHERWISE),
        (due(1, 2), given((TWO.astype("float32"),), (ONE,)), OTHERWISE),
        (due(1, 2), given((TWO,), (ONE.astype("float32"),)), OTHERWISE),
        (
            replace(due(1, 2), dtypes=frozenset({"float32", "float64"})),
            given((TWO.astype("float32"),), (ONE,)),
            AS_THE_NODE,
        ),
    ],
)
def test_the_outputs_of_the_node_and_the_dtypes_count(call: NodeCall, seen: Event, word: str) -> None:
    assert answers([call], [seen], [equal], 0, ended=False).word == word


def test_what_a_run_that_ended_early_shows_must_be_right() -> None:
    calls = [due(1, 2), due(3, 4)]
    assert answers(calls, [event(3, 4)], [equal], 0, ended=True).word == NOT_JUDGED
    assert answers(calls, [event(3, 7)], [equal], 0, ended=True).word != NOT_JUDGED


def test_exact_numbers_come_before_near_ones() -> None:
    """By the second look either event may be for either call; by the first each has its own."""
    calls, events = [due(1.0, 2.0), due(1.25, 7.0)], [event(1.25, 7.0), event(1.0, 2.0)]
    assignment = answers(calls, events, [equal, near], 0, ended=False)
    assert [seen for _, seen in assignment.due] == events[::-1]


@pytest.mark.slow
def test_few_cases_are_not_judged() -> None:
    """Fewer than one in sixty of those with a legacy hook. Where tensors are wrapped, of which some functions of torch
    make other Nodes, fewer than two in three."""
    ran, without = Counter[bool](), Counter[bool]()
    for family in FAMILIES:
        for topology in read(conformance_folder() / "corpus", family):
            (result,) = examine(topology, family, ("backward",), [CLAUSES["P2-12"]], Ledger(()))
            wrapped = not {*WRAPPING}.isdisjoint(inside(topology))
            ran[wrapped] += result.outcome == RAN
            without[wrapped] += bool(result.unjudged)
    assert without[False] < ran[False] / 60
    assert without[True] < ran[True] * 2 / 3


@pytest.mark.parametrize(
    ("broken", "gap"),
    [
        (with_gradients(LEGACY, numbers(7)), "wrong values"),
        (with_gradients(LEGACY, (np.array([[7.0]]),)), "wrong shape"),
        (with_gradients(LEGACY, numbers(None)), "None instead of a gradient"),
        (with_gradients(LEGACY, ()), "missing entries"),
        (with_gradients(LEGACY, numbers(7, 7)), "extra entries"),
        (with_gradients(LEGACY, [7.0]), "wrong arguments"),
        (with_gradients(OF_NUMBERS, numbers(7, 7)), "a gradient instead of None"),
        (raising(LEGACY, events=changed(LEGACY, arguments=(numbers(1), numbers(7))).observed.events), "wrong values"),
    ],
)
def test_it_is_told_by_what_grad_input_differs(broken: Case, gap: str) -> None:
    assert gaps(broken, "P2-12") == [("P2-12", gap)]


def test_a_module_of_several_nodes_is_held_to_the_last() -> None:
    """``y = W x`` of a vector is a product of matrices, of which the vector's axis is taken away again."""
    product = case(kind="backward")
    assert gaps(product, "P2-12") == [("P2-12", "wrong shape")]
    assert gaps(with_gradients(product, (np.array([[7.0]]),)), "P2-12") == []


def test_where_the_node_is_not_known_what_the_hook_advertises_is_not_judged() -> None:
    summed = with_gradients(case(EINSUM, kind="backward"), numbers(7, 7))
    assert (gaps(summed, "BW-07"), judged(summed, "BW-07"), unjudged(summed, "BW-07")) == ([], 0, 1)
    assert gaps(with_gradients(LEGACY, numbers(7, 7)), "BW-07") == [("BW-07", "extra entries")]


NORMED = case(RMSNorm((1,), 0.5, elementwise_affine=False), kind="backward", device="cuda")


@pytest.mark.parametrize("summed", [case(EINSUM, kind="backward"), NORMED])
def test_what_nobody_can_foretell_is_counted(summed: Case) -> None:
    assert (judged(summed, "P2-12"), unjudged(summed, "P2-12")) == (0, 1)
    assert gaps(summed, "P2-12") == []


def test_hooks_come_in_the_order_of_the_nodes() -> None:
    """The root and its last layer share a Node, on which the layer's hook was put first."""
    inner = Call("g", "m0", (X,)), Call("h", "m1", (Ref("g"),))
    chain = case(Composite((("m0", Tanh()), ("m1", Tanh())), ("x",), inner, Ref("h")), kind="backward")
    whole = replace(chain, observed=observe(chain.topology, chain.expected.numbers, "backward"))
    events = whole.observed.events
    assert [event.path for event in events] == ["m1", "", "m0"]
    assert whole.as_a_node(None)["order"] == {"of the Nodes"}
    for wrong in ((1, 0, 2), (0, 2, 1), (2, 1, 0)):
        moved = replace(whole, observed=replace(whole.observed, events=tuple(events[i] for i in wrong)))
        assert moved.as_a_node(None)["order"] == {"another"}


def test_a_cast_to_the_dtype_that_is_there_makes_no_node() -> None:
    """So the root and its last layer share one here as well."""
    inner = Call("g", "m0", (X,)), Call("h", "m1", (Ref("g"),)), Apply("same", To("float64"), (Ref("h"),))
    chain = case(Composite((("m0", Tanh()), ("m1", Tanh())), ("x",), inner, Ref("same")), kind="backward")
    whole = replace(chain, observed=observe(chain.topology, chain.expected.numbers, "backward"))
    assert [event.path for event in whole.observed.events] == ["m1", "", "m0"]
    assert whole.as_a_node(None)["order"] == {"of the Nodes"}


@pytest.mark.parametrize(
    ("layer", "shape", "of_outputs", "free"),
    [
        (LSTMCell(1, 1), (1, 1), (1, 1), False),  # h' is made of c'
        (LSTMCell(1, 1, unbatched=True), (1,), (1,), True),  # each has its axis taken away by a Node of its own
    ],
)
def test_outputs_of_one_step_may_have_nodes_of_their_own(
    layer: Layer, shape: tuple[int, ...], of_outputs: tuple[int, ...], free: bool
) -> None:
    """A module around the cell gives ``(c', h')``: its hook is on the Node of c', the cell's on that of h'."""
    h, c = Ref("h", (0,)), Ref("h", (1,))
    around = Composite((("m0", layer),), ("x",), (Call("h", "m0", (X,)),), Pack("tuple", (c, h)))
    inputs = (Input("x", shape, True), Input("v", of_outputs))
    firsts = (Ref("y", (0,)), Ref("y", (1,)))
    topology = Topology(around, inputs, (Call("y", "", (X,)), Backward(firsts, (Ref("v"), Ref("v")))))
    expected, seen = Expected(topology, values(topology)), observe(topology, values(topology), "backward")
    whole = Case(topology, KINDS["backward"], "cpu", expected, seen, observe(topology, values(topology), None))
    moved = replace(whole, observed=replace(seen, events=seen.events[::-1]))
    assert whole.as_a_node(None)["order"] == {"of the Nodes"}
    assert moved.as_a_node(None)["order"] == ({"of the Nodes"} if free else {"another"})


def test_what_a_transform_makes_of_a_linear_layer_of_no_rows_is_not_judged() -> None:
    call = Call("y", "", (X,), context="vjp")
    vector = case(Linear(1, 1), (call, Backward((Ref("y"),), (Ref("v"),))), kind="backward")
    assert (judged(vector, "P2-12"), unjudged(vector, "P2-12")) == (0, 1)
