"""Linear, Conv2d, the first activations, Flatten, and sums and products."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.structure import Flatten
from hookcheck.topology.ops import Add, Mean, Mul, Sum


def linear(layer: Any, inputs: Any, parameters: Any) -> Any:
    y = jnp.einsum("...i,oi->...o", inputs[0], parameters["weight"])
    return (y + parameters["bias"] if layer.bias else y,)


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
    return (y + parameters["bias"][:, None, None] if layer.bias else y,)


IN_JAX = {
    Linear: linear,
    Conv2d: conv2d,
    Sigmoid: lambda _, inputs, __: (jax.nn.sigmoid(inputs[0]),),
    Tanh: lambda _, inputs, __: (jnp.tanh(inputs[0]),),
    ReLU: lambda _, inputs, __: (jax.nn.relu(inputs[0]),),
    Flatten: lambda _, inputs, __: (inputs[0].reshape(len(inputs[0]), -1),),
    Add: lambda _, inputs, __: (inputs[0] + inputs[1],),
    Mul: lambda _, inputs, __: (inputs[0] * inputs[1],),
    Sum: lambda _, inputs, __: (inputs[0].sum(),),
    Mean: lambda _, inputs, __: (inputs[0].mean(),),
}
NOT_IN_JAX: dict[type, str] = {}
