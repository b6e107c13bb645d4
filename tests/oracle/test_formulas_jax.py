"""Each layer's and operation's VJP against ``jax.vjp``, a second opinion that shares no code with torch or with us."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.structure import Flatten
from hookcheck.topology.model import Primitive
from hookcheck.topology.ops import Add, Mean, Mul, Sum

from .primitives import assert_close, existing, steps

jax = pytest.importorskip("jax", reason="the second opinion on the formulas needs JAX")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy


def linear(layer: Any, inputs: Any, parameters: Any) -> Any:
    y = jnp.einsum("...i,oi->...o", inputs[0], parameters["weight"])
    return y + parameters["bias"] if layer.bias else y


def conv2d(layer: Any, inputs: Any, parameters: Any) -> Any:
    y = jax.lax.conv_general_dilated(
        inputs[0],
        parameters["weight"],
        window_strides=layer.stride,
        padding=[(p, p) for p in layer.padding],
        rhs_dilation=layer.dilation,
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
        feature_group_count=layer.groups,
    )
    return y + parameters["bias"][:, None, None] if layer.bias else y


IN_JAX: dict[type[Primitive], Callable[[Any, Any, Any], Any]] = {
    Linear: linear,
    Conv2d: conv2d,
    Sigmoid: lambda _, inputs, __: jax.nn.sigmoid(inputs[0]),
    Tanh: lambda _, inputs, __: jnp.tanh(inputs[0]),
    ReLU: lambda _, inputs, __: jax.nn.relu(inputs[0]),
    Flatten: lambda _, inputs, __: inputs[0].reshape(len(inputs[0]), -1),
    Add: lambda _, inputs, __: inputs[0] + inputs[1],
    Mul: lambda _, inputs, __: inputs[0] * inputs[1],
    Sum: lambda _, inputs, __: inputs[0].sum(),
    Mean: lambda _, inputs, __: inputs[0].mean(),
}
NOT_IN_JAX: dict[type[Primitive], str] = {}
"""What JAX does not have, each with the reason; central differences alone prove it."""


def test_every_layer_and_operation_is_in_jax_or_said_not_to_be() -> None:
    assert set(existing()) == {*IN_JAX, *NOT_IN_JAX}


@pytest.mark.parametrize("kind", IN_JAX, ids=lambda kind: kind.__name__)
@settings(deadline=None, max_examples=12)  # JAX compiles anew for each shape
@given(data=st.data())
def test_forward_and_vjp_are_those_of_jax(kind: type[Primitive], data: st.DataObject) -> None:
    step = data.draw(steps(kind))
    primitive = step.primitive
    output, pull = jax.vjp(
        lambda inputs, parameters: IN_JAX[kind](primitive, inputs, parameters), step.inputs, step.parameters
    )
    (observed,) = primitive.forward(step.inputs, step.parameters)
    assert_close(observed, np.asarray(output), 1e-12)
    of_inputs, of_parameters = primitive.vjp(step.inputs, step.parameters, step.cotangents)
    wanted_inputs, wanted_parameters = pull(jnp.asarray(step.cotangents[0]))
    for ours, theirs in zip(of_inputs, wanted_inputs):
        assert_close(ours, np.asarray(theirs), 1e-12)
    assert of_parameters.keys() == wanted_parameters.keys()
    for name, gradient in of_parameters.items():
        assert_close(gradient, np.asarray(wanted_parameters[name]), 1e-12)
