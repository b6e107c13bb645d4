"""Each layer's and operation's formulas: the forward against torch's, the VJP against central differences of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.structure import Flatten
from hookcheck.topology.model import Array, Layer, Op, Primitive
from hookcheck.topology.ops import Add, Mean, Mul, Sum

from .primitives import DRAWN, Step, assert_close, existing, steps

KINDS = list(existing())
every = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
examples = settings(deadline=None, max_examples=40)
STEP = 2.0**-17  # near the cube root of float64's rounding, where central differences are most exact


def test_every_layer_and_operation_is_drawn_here() -> None:
    missing = {kind.__name__ for kind in KINDS} - {kind.__name__ for kind in DRAWN}
    assert not missing, f"add a strategy for {missing} to DRAWN, so that their formulas are proved"
    assert set(KINDS) == set(DRAWN)


def in_torch(step: Step) -> tuple[torch.nn.Module | None, Array]:
    """What torch computes from the primitive's own source line, in float64."""
    inputs = [torch.tensor(x) for x in step.inputs]
    if isinstance(step.primitive, Layer):
        module = eval(step.primitive.source(), {"nn": torch.nn}).double()
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(torch.tensor(step.parameters[name]))
        return module, module(*inputs).detach().numpy()
    assert isinstance(step.primitive, Op)
    names = dict(zip("ab", inputs))
    return None, eval(step.primitive.source(*names), names).numpy()


@every
@examples
@given(data=st.data())
def test_the_forward_is_that_of_torch(kind: type[Primitive], data: st.DataObject) -> None:
    step = data.draw(steps(kind))
    module, expected = in_torch(step)
    (observed,) = step.primitive.forward(step.inputs, step.parameters)
    assert observed.dtype == np.float64
    assert_close(observed, expected, 1e-13)
    if module is not None:
        in_order = [(name, tuple(p.shape)) for name, p in module.named_parameters()]
        assert in_order == list(step.primitive.parameters().items())


def slopes(value: Callable[[], float], array: Array) -> Array:
    """The central differences of ``value`` with respect to each element of ``array``, which it reads."""
    found = np.zeros(array.shape)
    for index in np.ndindex(*array.shape):
        kept = array[index]
        array[index] = kept + STEP
        above = value()
        array[index] = kept - STEP
        found[index] = (above - value()) / (2 * STEP)
        array[index] = kept
    return found


def differentiated(step: Step) -> Iterator[tuple[Array, Array]]:
    """For each input and each parameter: what the VJP gives, and the central differences of our own forward."""
    primitive, inputs, parameters = step.primitive, step.inputs, step.parameters

    def value() -> float:
        outputs = primitive.forward(inputs, parameters)
        return sum(float((v * y).sum()) for v, y in zip(step.cotangents, outputs))

    of_inputs, of_parameters = primitive.vjp(inputs, parameters, step.cotangents)
    assert len(of_inputs) == len(inputs)
    assert of_parameters.keys() == parameters.keys()
    for array, gradient in [*zip(inputs, of_inputs), *((parameters[name], of_parameters[name]) for name in parameters)]:
        yield gradient, slopes(value, array)


@every
@examples
@given(data=st.data())
def test_the_vjp_of_inputs_and_parameters_is_the_slope_of_the_forward(
    kind: type[Primitive], data: st.DataObject
) -> None:
    for gradient, slope in differentiated(data.draw(steps(kind))):
        assert_close(gradient, slope, 1e-6)


@every
@settings(examples, max_examples=10)
@given(data=st.data())
def test_forward_and_vjp_leave_their_arguments_alone(kind: type[Primitive], data: st.DataObject) -> None:
    step = data.draw(steps(kind))
    arrays = [*step.inputs, *step.parameters.values(), *step.cotangents]
    before = [array.copy() for array in arrays]
    step.primitive.forward(step.inputs, step.parameters)
    step.primitive.vjp(step.inputs, step.parameters, step.cotangents)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before))


def ran(primitive: Primitive, *inputs: Any, v: Any, **parameters: Any) -> tuple[Any, Any, Any]:
    """Output, gradients of inputs and gradients of parameters, as lists."""
    arrays = tuple(np.array(x, dtype=float) for x in inputs)
    held = {name: np.array(p, dtype=float) for name, p in parameters.items()}
    (y,) = primitive.forward(arrays, held)
    of_inputs, of_parameters = primitive.vjp(arrays, held, (np.array(v, dtype=float),))
    return y.tolist(), [g.tolist() for g in of_inputs], {name: g.tolist() for name, g in of_parameters.items()}


def test_linear_by_hand() -> None:
    # y = (1·3 + 2·4 + 10, 1·5 + 2·6 + 20); dx = (1·3 + 2·5, 1·4 + 2·6); dW = v ⊗ x; db = v.
    y, dx, d = ran(Linear(2, 2), [1, 2], v=[1, 2], weight=[[3, 4], [5, 6]], bias=[10, 20])
    assert y == [21, 37]
    assert dx == [[13, 16]]
    assert d == {"weight": [[1, 2], [2, 4]], "bias": [1, 2]}


def test_convolution_by_hand() -> None:
    # A row (1, 2, 3) under the kernel (10, 100): y = (1·10 + 2·100, 2·10 + 3·100) + 5.
    # With v = (1, 2): dx = (10, 100 + 2·10, 2·100), dW = (1·1 + 2·2, 1·2 + 2·3), db = 1 + 2.
    y, dx, d = ran(Conv2d(1, 1, (1, 2)), [[[[1, 2, 3]]]], v=[[[[1, 2]]]], weight=[[[[10, 100]]]], bias=[5])
    assert y == [[[[215, 325]]]]
    assert dx == [[[[[10, 120, 200]]]]]
    assert d == {"weight": [[[[5, 8]]]], "bias": [3]}


def test_a_pixel_that_no_window_reaches_has_gradient_zero() -> None:
    # With stride 2 a kernel of one pixel reads pixels 0 and 2 of four.
    _, dx, _ = ran(
        Conv2d(1, 1, (1, 1), stride=(1, 2), bias=False), [[[[1, 2, 3, 4]]]], v=[[[[1, 1]]]], weight=[[[[7]]]]
    )
    assert dx == [[[[[7, 0, 7, 0]]]]]


def test_activations_by_hand() -> None:
    # σ(0) = 1/2 with slope 1/4; tanh(0) = 0 with slope 1.
    assert ran(Sigmoid(), [0], v=[8]) == ([0.5], [[2]], {})
    assert ran(Tanh(), [0], v=[8]) == ([0], [[8]], {})
    assert ran(ReLU(), [-2, 3], v=[8, 8]) == ([0, 3], [[0, 8]], {})


def test_the_slope_of_relu_at_its_kink_is_zero() -> None:
    assert ran(ReLU(), [0], v=[8]) == ([0], [[0]], {})


def test_operations_by_hand() -> None:
    assert ran(Add(), [1, 2], [3, 4], v=[5, 6]) == ([4, 6], [[5, 6], [5, 6]], {})
    assert ran(Mul(), [1, 2], [3, 4], v=[5, 6]) == ([3, 8], [[15, 24], [5, 12]], {})
    assert ran(Sum(), [1, 2, 6], v=3) == (9, [[3, 3, 3]], {})
    assert ran(Mean(), [1, 2, 6], v=3) == (3, [[1, 1, 1]], {})
    assert ran(Flatten(), [[[1, 2], [3, 4]]], v=[[5, 6, 7, 8]]) == ([[1, 2, 3, 4]], [[[[5, 6], [7, 8]]]], {})
