"""What does the last Node of a layer or operation hand on, on each release? By hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.last_node import Forms
from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.last_node import Release
from hookcheck.topology.layers.activation import Softsign
from hookcheck.topology.layers.attention import MultiheadAttention
from hookcheck.topology.layers.cells import LSTMCell
from hookcheck.topology.layers.convolution import Conv1d, Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.loss_elementwise import KLDivLoss, L1Loss
from hookcheck.topology.layers.loss_entropy import BCELoss
from hookcheck.topology.layers.normalisation import RMSNorm
from hookcheck.topology.layers.recurrent import LSTM
from hookcheck.topology.layers.shuffling import PixelShuffle
from hookcheck.topology.model import Apply, Backward, Call, Composite, Grad, Input, Topology
from hookcheck.topology.ops.arithmetic import Add, Maximum, Where
from hookcheck.topology.ops.contraction import Einsum, MatMul
from hookcheck.topology.ops.elementwise import Shift
from hookcheck.topology.ops.inplace import AddInplace
from hookcheck.topology.ops.joining import Cat
from hookcheck.topology.ops.moving import To
from hookcheck.topology.ops.tensors import AsTensor
from hookcheck.topology.primitive import Layer
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

X, Y, V, H, Z = (Ref(name) for name in "xyvhz")
CALLED, FROM_Y = Call("y", "", (X,)), Backward((Y,), (V,))


def forms_at(topology: Topology, torch_release: Release, path: str = "", **numbers: Any) -> Forms:
    """What the hook of the module at ``path`` may be given as grad_input; the numbers are small whole ones."""
    given = {**values(topology), **{name: np.array(array, float) for name, array in numbers.items()}}
    (call,) = [c for c in Expected(topology, given, release=torch_release).of_first_output if c.call.path == path]
    return call.forms


def of(module: Any, shape: tuple[int, ...], out: tuple[int, ...], **more: Any) -> Topology:
    """The module called on ``x``, and a backward from what it gives."""
    return Topology(module, (Input("x", shape, requires_grad=True), Input("v", out)), (CALLED, FROM_Y), **more)


def lists(alternatives: Forms) -> list[list[Any]]:
    return [[None if gradient is None else gradient.tolist() for gradient in form] for form in alternatives]


def shapes(alternatives: Forms) -> list[list[Any]]:
    return [[None if gradient is None else gradient.shape for gradient in form] for form in alternatives]


def test_a_linear_layer_of_rows_is_addmm_in_every_release() -> None:
    topology = of(Linear(2, 1), (2, 2), (2, 1))
    numbers = {"x": [[1, 2], [3, 4]], "weight": [[5, 6]], "bias": [7], "v": [[1], [10]]}
    for minor in ((1, 7), (1, 12), (2, 15)):
        gradients = lists(forms_at(topology, minor, **numbers))
        assert gradients == [[[11], [[5, 6], [50, 60]], [[31], [42]]]]


@pytest.mark.parametrize(
    ("minor", "leading", "flattened"),
    [
        ((1, 7), (1, 2), False),
        ((1, 11), (1, 2), False),
        ((1, 12), (1, 2), True),
        ((2, 0), (1, 2), True),
        ((2, 1), (1, 2), True),
        ((2, 0), (1, 1, 2), False),
        ((2, 1), (1, 1, 2), True),
    ],
)
def test_a_linear_layer_of_sequences_changes_with_the_release(
    minor: Release, leading: tuple[int, ...], flattened: bool
) -> None:
    """The addition of the bias, or, where x is contiguous, the rows of one product; of an input that is known."""
    v = np.array([1.0, 10.0]).reshape(*leading, 1)
    rows, added = [[[1], [10]]], [v.tolist(), [11]]
    gradients = lists(forms_at(of(Linear(2, 1), (*leading, 2), v.shape), minor, v=v))
    assert gradients == ([rows] if flattened else [added])
    after = Composite((("fc", Linear(2, 1)),), ("x",), (Apply("u", Shift(1.0), (X,)), Call("h", "fc", (Ref("u"),))), H)
    gradients = lists(forms_at(of(after, (*leading, 2), v.shape), minor, "fc", v=v))
    assert gradients == ([rows, added] if flattened else [added])


@pytest.mark.parametrize(("minor", "copied"), [((2, 8), False), ((2, 9), True)])
def test_a_norm_of_what_is_not_known_to_be_contiguous_may_end_with_a_copy(minor: Release, copied: bool) -> None:
    """x̂ is 1 for a single number, so that the product with the weight hands on w v and v, and a copy v."""
    norm = RMSNorm((1,), 0.0)
    numbers = {"x": [[2]], "v": [[3]]}
    product, copy = [[[15]], [3]], [[[3]]]
    assert lists(forms_at(of(norm, (1, 1), (1, 1)), minor, weight=[5], **numbers)) == [product]
    after = Composite((("n", norm),), ("x",), (Apply("u", Shift(1.0), (X,)), Call("h", "n", (Ref("u"),))), H)
    gradients = lists(forms_at(of(after, (1, 1), (1, 1)), minor, "n", **{"n.weight": [5]}, **numbers))
    assert gradients == ([product, copy] if copied else [product])


@pytest.mark.parametrize(("minor", "known"), [((1, 9), False), ((1, 10), True)])
def test_up_to_1_9_nobody_knows_what_goes_on_from_equal_numbers(minor: Release, known: bool) -> None:
    """Up to then the second got all of the gradient; half of it is what the oracle has for both."""
    both = Composite((), ("x",), (Apply("h", Maximum(), (X, X)),), H)
    assert lists(forms_at(of(both, (1,), (1,)), minor, x=[2], v=[4])) == ([[[2], [2]]] if known else [])


def test_a_convolution_gives_the_gradient_of_its_input_first() -> None:
    """With a kernel of one element y = 3 x + 4: dx = 3 v, dW = Σ v x, db = Σ v."""
    topology = of(Conv2d(1, 1, (1, 1)), (1, 1, 1, 2), (1, 1, 1, 2))
    alternatives = forms_at(topology, (2, 13), x=[[[[1, 2]]]], weight=[[[[3]]]], bias=[4], v=[[[[1, 10]]]])
    assert lists(alternatives) == [[[[[[3, 30]]]], [[[[21]]]], [11]]]
    assert shapes(forms_at(of(Conv2d(1, 1, (1, 1), bias=False), (1, 1, 1, 2), (1, 1, 1, 2)), (1, 7)))[0][2] is None


@pytest.mark.parametrize(
    ("dtype", "minor", "expected_shapes"),
    [
        ("float64", (1, 10), [[(1, 1, 1, 2), (1, 1, 1, 2)]]),
        ("float32", (1, 10), [[(1, 1, 1, 2), (1, 1, 1, 2)], [(1, 2, 1, 2), (2, 1, 1, 1), (2,)]]),
        ("float64", (1, 11), [[(1, 2, 1, 2), (2, 1, 1, 1), (2,)]]),
    ],
)
def test_groups_were_run_one_by_one(dtype: str, minor: Release, expected_shapes: list[Any]) -> None:
    topology = of(Conv2d(2, 2, (1, 1), groups=2), (1, 2, 1, 2), (1, 2, 1, 2), dtype=dtype)
    assert shapes(forms_at(topology, minor)) == expected_shapes


def test_a_padded_convolution_gives_the_gradient_of_what_was_padded() -> None:
    layer = Conv1d(1, 1, (1,), padding=(1,), bias=False, padding_mode="circular")
    alternatives = forms_at(of(layer, (1, 1, 2), (1, 1, 4)), (2, 13), weight=[[[3]]], v=[[[1, 2, 3, 4]]])
    assert lists(alternatives)[0][0] == [[[3, 6, 9, 12]]]


@pytest.mark.parametrize(
    ("module", "arguments", "minor", "expected_shapes"),
    [
        (BCELoss(), 2, (1, 9), [[(2,)]]),
        (BCELoss(), 2, (1, 10), [[(2,), None]]),
        (L1Loss(), 2, (1, 12), [[(2,), None]]),
        (L1Loss(), 2, (1, 13), [[(2,)]]),
        (KLDivLoss("none"), 2, (1, 12), [[(2,), None]]),
        (KLDivLoss("none"), 2, (1, 13), [[None, (2,)]]),
        (To("float32"), 1, (1, 9), [[None, (2,)]]),
        (To("float32"), 1, (1, 10), [[(2,)]]),
        (Shift(1.0), 1, (1, 7), [[(2,), None]]),
        (Add(), 2, (1, 7), [[(2,), None]]),
        (Cat(0), 2, (1, 7), [[(2,), (2,)]]),
        (Einsum("a,a->a"), 2, (2, 13), []),
    ],
)
def test_the_entries_of_a_node(module: Any, arguments: int, minor: Release, expected_shapes: list[Any]) -> None:
    """The second argument requires no grad: there is a place for it where the Node has one."""
    given = tuple(Ref(name) for name in "xz"[:arguments])
    takes = tuple(ref.name for ref in given)
    body = Call("h", "m", given) if isinstance(module, Layer) else Apply("h", module, given)
    net = Composite((("m", module),) if isinstance(module, Layer) else (), takes, (body,), H)
    inputs = (Input("x", (2,), True, "unit"), *[Input("z", (2,), domain="unit")][: arguments - 1])
    outputs = {"BCELoss": (), "L1Loss": (), "Cat": (4,)}
    out = Input("v", outputs.get(type(module).__name__, (2,)), dtype="float32" if isinstance(module, To) else "")
    topology = Topology(net, (*inputs, out), (Call("y", "", given), FROM_Y))
    assert shapes(forms_at(topology, minor)) == expected_shapes


@pytest.mark.parametrize(("dtype", "expected_shapes"), [("float64", [[(2,), None]]), ("float32", [[(2,)]])])
def test_a_cast_to_the_dtype_that_is_there_has_no_node(dtype: str, expected_shapes: list[Any]) -> None:
    """What is handed on is what the addition before it does, in a place for each of the two that it adds."""
    body = (Apply("u", Add(), (X, Z)), Apply("h", To(dtype), (Ref("u"),)))
    net = Composite((), ("x", "z"), body, H)
    inputs = (Input("x", (2,), True), Input("z", (2,)), Input("v", (2,), dtype="" if dtype == "float64" else dtype))
    topology = Topology(net, inputs, (Call("y", "", (X, Z)), FROM_Y))
    assert shapes(forms_at(topology, (2, 13))) == expected_shapes


def test_where_was_broadcast_before() -> None:
    net = Composite((), ("x", "z", "m"), (Apply("h", Where(), (X, Z, Ref("m"))),), H)
    inputs = (Input("x", (1,), True), Input("z", (2,)), Input("m", (2,), domain="mask"), Input("v", (2,)))
    topology = Topology(net, inputs, (Call("y", "", (X, Z, Ref("m"))), FROM_Y))
    assert shapes(forms_at(topology, (1, 11))) == [[(2,), None]]
    assert shapes(forms_at(topology, (1, 12))) == [[(1,), None]]


@pytest.mark.parametrize(("minor", "shape"), [((1, 11), (1, 1, 2, 2, 3, 2)), ((1, 12), (1, 4, 2, 3))])
def test_a_pixel_shuffle_was_a_permutation(minor: Release, shape: tuple[int, ...]) -> None:
    assert shapes(forms_at(of(PixelShuffle(2), (1, 4, 2, 3), (1, 1, 4, 6)), minor)) == [[shape]]


@pytest.mark.parametrize(("minor", "expected_form"), [((1, 11), [(3, 2, 2), (2,)]), ((1, 12), [(6, 2)])])
def test_attention_ends_in_a_linear_layer(minor: Release, expected_form: list[Any]) -> None:
    layer = MultiheadAttention(2, 1, sources=1, need_weights=False)
    net = Composite((("m", layer),), ("x",), (Call("h", "m", *layer.call((X,))),), Ref("h", (0,)))
    assert shapes(forms_at(of(net, (3, 2, 2), (3, 2, 2)), minor, "m")) == [expected_form]


@pytest.mark.parametrize(("minor", "trimmed"), [((1, 12), False), ((1, 13), True)])
def test_what_nobody_asks_for_is_not_worked_out(minor: Release, trimmed: bool) -> None:
    main = (CALLED, Grad("g", (Y,), (X,), (V,)))
    topology = Topology(Linear(2, 1), (Input("x", (1, 2), True), Input("v", (1, 1))), main)
    entries = shapes(forms_at(topology, minor))
    assert entries == [[None, (1, 2), None]] if trimmed else entries == [[(1,), (1, 2), (2, 1)]]


def test_a_write_to_a_view_that_torch_made_is_one_to_its_base() -> None:
    """A Linear layer gives a view of its rows; what is added in place to it has their shape."""
    body = (Call("h", "fc", (X,)), Apply("z", AddInplace(), (H, H)))
    net = Composite((("fc", Linear(2, 2)),), ("x",), body, Z)
    topology = of(net, (1, 3, 2), (1, 3, 2))
    assert shapes(forms_at(topology, (2, 13))) == [[(3, 2)]]
    assert shapes(forms_at(topology, (1, 7))) == shapes(forms_at(topology, (2, 15))) == [[(1, 3, 2), (1, 3, 2)]]


def test_a_view_stays_one_when_it_is_written_to_twice() -> None:
    body = (Call("h", "fc", (X,)), Apply("u", AddInplace(), (H, H)), Apply("z", AddInplace(), (Ref("u"), Ref("u"))))
    net = Composite((("fc", Linear(2, 2)),), ("x",), body, Z)
    assert shapes(forms_at(of(net, (1, 3, 2), (1, 3, 2)), (2, 13))) == [[(3, 2)]]


@pytest.mark.parametrize(("dtype", "known"), [("float64", True), ("float32", False)])
def test_what_a_library_may_compute_at_once_is_not_known(dtype: str, known: bool) -> None:
    layer = LSTM(1, 1)
    net = Composite((("m", layer),), ("x",), (Call("h", "m", (X,)),), Ref("h", (0,)))
    alternatives = forms_at(of(net, (2, 1, 1), (2, 1, 1), dtype=dtype), (2, 13), "m")
    assert shapes(alternatives) == ([[(1, 1), (1, 1)]] if known else [])


def test_the_state_of_a_cell_has_what_comes_through_its_output() -> None:
    """``h' = σ(o) tanh(c')``; the sum of two that makes ``c'`` hands its whole gradient on twice."""
    layer = LSTMCell(1, 1)
    net = Composite((("m", layer),), ("x",), (Call("h", "m", (X,)),), Ref("h", (1,)))
    ((one, other),) = forms_at(of(net, (1, 1), (1, 1)), (2, 13), v=[[5]])
    assert one is not None
    assert one.tolist() == [[5]]
    assert other is one or np.array_equal(other, one)


def test_two_nodes_that_lead_to_one_operand_both_count() -> None:
    ((first, second),) = forms_at(of(Softsign(), (2,), (2,)), (2, 13), x=[1, -3], v=[2, 16])
    assert_close(first, [1, 4])  # v / (1 + |x|)
    assert_close(second, [-0.5, 3])  # −v x / (1 + |x|)²


def test_a_vector_before_a_matrix_is_made_one() -> None:
    net = Composite((), ("x", "z"), (Apply("h", MatMul(), (X, Z)),), H)
    inputs = (Input("x", (2,), True), Input("z", (2, 3)), Input("v", (3,)))
    assert shapes(forms_at(Topology(net, inputs, (Call("y", "", (X, Z)), FROM_Y)), (2, 13))) == [[(1, 3)]]


@pytest.mark.parametrize("of_class", ["subclass", ""])
def test_what_functions_make_of_a_class_that_wraps_is_an_alias(of_class: str) -> None:
    """The class is of a tensor that autograd records no step of: the input requires no gradient."""
    children = (("m0", Linear(2, 1, bias=False)),)
    steps = (Apply("s", AsTensor(of_class), (X,)),) if of_class else ()
    body = (*steps, Call("h", "m0", (Ref("s") if of_class else X,)))
    inputs = (Input("x", (1, 2)), Input("v", (1, 1)))
    topology = Topology(Composite(children, ("x",), body, H), inputs, (CALLED, FROM_Y))
    (form,) = forms_at(topology, (2, 13), "m0", v=[[3]])
    assert len(form) == (1 if of_class else 2)  # else Mm's: None for the input, and that of the weight
    assert form[0] is None or form[0].tolist() == [[3]]
