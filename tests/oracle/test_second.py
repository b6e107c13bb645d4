from __future__ import annotations

from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.gradient import state
from hookcheck.oracle.graph import Node, Tensor
from hookcheck.oracle.second import Transposed
from hookcheck.oracle.tolerance import assert_close, close
from hookcheck.topology.build import build
from hookcheck.topology.families import double_backward
from hookcheck.topology.layers.activation import Sigmoid, Tanh
from hookcheck.topology.layers.adjustable import Softplus
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.normalisation import LayerNorm
from hookcheck.topology.layers.softmax import Softmax
from hookcheck.topology.model import Apply, Backward, Call, Composite, Grad, Input, Sequential, Statement, Topology
from hookcheck.topology.ops import Add, Mul, Sum
from hookcheck.topology.ops.elementwise import Pow
from hookcheck.topology.ops.moving import Gather
from hookcheck.topology.primitive import Array, Primitive
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

X, Y, V, G = Ref("x"), Ref("y"), Ref("v"), Ref("g", (0,))
CALLED = Call("y", "", (X,))


def array(tensor: Any) -> Array:
    numbers: Array = tensor.detach().numpy().astype(float)
    return numbers


def node(primitive: Primitive, *operands: Array, parameters: tuple[str, ...] = ()) -> Node:
    inputs = tuple(Tensor(x, True, "float64", name=str(i)) for i, x in enumerate(operands))
    split = len(operands) - len(parameters)
    outputs = primitive.forward(operands[:split], dict(zip(parameters, operands[split:])))
    return Node(0, primitive, inputs, tuple(y.shape for y in outputs), parameters)


def depends(primitive: Primitive, *operands: Array, parameters: tuple[str, ...] = ()) -> list[tuple[bool, ...] | None]:
    """For each gradient that the VJP gives: on which operands and cotangents it depends."""
    step = Transposed(node(primitive, *operands, parameters=parameters))
    count = len(operands)
    return [step.reaches(tuple(i == k for i in range(count))) for k in range(count)]


def penalised(module: Primitive | Sequential | Composite, shape: tuple[int, ...], *last: Statement) -> Topology:
    """The gradient of ``sum(y v)`` for ``x``, and what is done with it."""
    inputs = (Input("x", shape, requires_grad=True), Input("v", shape))
    first = Grad("g", (Y,), (X,), (V,), create_graph=True)
    return Topology(module, inputs, (CALLED, first, *last))  # type: ignore[arg-type]


SQUARED = (Apply("q", Mul(), (G, G)), Apply("n", Sum(), (Ref("q"),)), Backward((Ref("n"),)))


def test_the_gradient_of_a_gradient_by_hand() -> None:
    cube = Composite((), ("x",), (Apply("z", Pow(3), (X,)),), Ref("z"))
    topology = penalised(cube, (4,), *SQUARED)
    numbers = values(topology)
    x, v = numbers["x"], numbers["v"]

    expected = Expected(topology, numbers)

    assert_close(expected.trace.names["g"][0].array, 3 * x**2 * v)
    assert_close(expected.leaf_gradients["x"], 36 * x**3 * v**2, doubled=True)  # of sum((3 x² v)²)


def test_a_gradient_without_create_graph_is_a_constant() -> None:
    cube = Composite((), ("x",), (Apply("z", Pow(3), (X,)),), Ref("z"))
    plain = Grad("g", (Y,), (X,), (V,))
    topology = Topology(cube, (Input("x", (2,), requires_grad=True), Input("v", (2,))), (CALLED, plain, *SQUARED[:2]))
    names = Expected(topology, values(topology)).trace.names
    assert not names["g"][0].requires_grad
    assert not names["n"].requires_grad


def test_the_vjp_of_a_vjp_by_hand() -> None:
    a, b, v = np.array([0.5, -1.5]), np.array([2.0, 0.75]), np.array([1.25, -0.5])
    p, q = np.array([-1.0, 3.0]), np.array([0.25, 1.0])
    (da, db, dv), none = Transposed(node(Mul(), a, b)).vjp((a, b, v), {}, (p, q))  # of p v b + q v a
    assert da is not None
    assert db is not None
    assert dv is not None
    assert not none
    assert_close(da, q * v, doubled=True)
    assert_close(db, p * v, doubled=True)
    assert_close(dv, p * b + q * a, doubled=True)


def test_what_differences_lose_in_float32_is_not_taken_for_rounding() -> None:
    topology = replace(penalised(Tanh(), (3,), *SQUARED), dtype="float32")
    expected = Expected(topology, values(topology))
    gradient = expected.leaf_gradients["x"]
    assert expected.close(gradient.copy(), gradient)
    assert not expected.close(gradient * (1 + 2.0**-7), gradient)


def test_tensors_without_dimensions_have_slopes_too() -> None:
    a, b, v = (np.float64(x).reshape(()) for x in (0.5, 2.0, 1.25))
    slopes, _ = Transposed(node(Mul(), a, b)).vjp((a, b, v), {}, (np.ones(()), np.ones(())))
    assert [None if s is None else s.shape for s in slopes] == [(), (), ()]
    assert_close([float(s) for s in slopes if s is not None], [1.25, 1.25, 2.5], doubled=True)


def test_an_index_has_no_slope() -> None:
    x, index = np.arange(6.0).reshape(2, 3), np.array([[0, 2, 1]])
    gather = Gather(1)
    step = Transposed(node(gather, x, index))
    slopes, _ = step.vjp((x, index, np.ones((1, 3))), {}, (np.ones((2, 3)), np.zeros((1, 3))))
    assert slopes[1] is None


SPREAD = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
WEIGHT = np.array([[1.0, -0.5, 0.25], [2.0, 1.5, -1.0]])


def test_the_vjp_of_a_linear_depends_on_the_other_factor_alone() -> None:
    of_x, of_weight = depends(Linear(3, 2, bias=False), SPREAD, WEIGHT, parameters=("weight",))
    assert of_x == (False, True, True)  # x, weight, cotangent
    assert of_weight == (True, False, True)


@pytest.mark.parametrize("primitive", [Softmax(-1), LayerNorm((3,), elementwise_affine=False), Tanh()])
def test_what_is_invariant_under_a_shift_depends_on_its_input(primitive: Primitive) -> None:
    assert depends(primitive, SPREAD) == [(True, True)]


def test_what_is_linear_depends_on_the_cotangent_alone() -> None:
    assert depends(Add(), SPREAD, SPREAD) == [(False, False, True), (False, False, True)]


def test_a_step_that_saturates_depends_on_its_input() -> None:
    assert depends(Sigmoid(), np.array([1e4, 2e4])) == [(True, True)]


def test_the_second_pass_goes_through_the_forward_graph() -> None:
    """The gradient of Linear and Tanh depends on what the Linear gave, and on the Linear's weight: the second backward
    reaches the output of the Linear, and of the Tanh and of the whole net the inside alone."""
    topology = penalised(Sequential((Linear(2, 2), Tanh())), (2,), *SQUARED)
    expected = Expected(topology, values(topology))
    firings = {(f.backward, f.call.path): f for f in expected.firings}
    assert firings.keys() == {(number, path) for number in (0, 1) for path in ("", "0", "1")}
    for path, output in (("", "absent"), ("1", "absent"), ("0", "value")):
        assert state(firings[1, path].grad_output[0]) == output
        assert state(firings[1, path].grad_input[0]) == "value"


def test_parameters_that_the_gradient_does_not_depend_on_have_none() -> None:
    topology = penalised(Linear(2, 2), (2,), *SQUARED)
    assert Expected(topology, values(topology)).leaf_gradients.keys() == {"weight"}  # g = v W


@settings(max_examples=60)
@given(double_backward.topologies())
def test_torch_agrees(topology: Topology) -> None:
    run = build(topology, values(topology))
    names, expected = run.run(), Expected(topology, values(topology))
    for tensor, known in zip(names["g"], expected.trace.names["g"]):
        assert tensor.requires_grad is known.requires_grad
        assert expected.close(array(tensor), known.array)
    for tensor, known in zip(names.get("gg", ()), expected.trace.names.get("gg", ())):
        assert (tensor is None) is (known is None)
        if tensor is not None and topology.dtype == "float64":
            assert_close(array(tensor), known.array, doubled=True)
    for name, leaf in {**run.parameters, **run.inputs}.items():
        gradient = leaf.grad
        known = expected.leaf_gradients.get(name)
        assert (gradient is None) is (known is None), name
        assert known is None or expected.close(array(gradient), known), name


def test_what_differences_leave_where_a_slope_jumps_is_no_deviation() -> None:
    topology = penalised(Softplus(8.0), (1,), *SQUARED)
    expected = Expected(topology, {"x": np.array([2.5]), "v": np.array([1.0])})  # on the threshold: 8 · 2.5 = 20
    known = expected.leaf_gradients["x"]
    exact = np.array([2 * 8 * exp(-20)])  # of σ(8 x)², where σ is 1 but for e⁻²⁰
    assert not close(exact, known, "float64", "cpu", doubled=True)
    assert expected.close(exact, known)
    assert not expected.close(exact + 1e-2, known)
