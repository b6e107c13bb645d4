"""Convolutions and transposed convolutions, Linear and Bilinear."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from hookcheck.topology.layers.bilinear import Bilinear
from hookcheck.topology.layers.convolution import Conv1d, Conv2d, Conv3d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.transposed import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

PAD = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def biased(layer: Any, y: Any, parameters: Any, axes: int = 0) -> Any:
    return (y + parameters["bias"].reshape(-1, *(1,) * axes) if layer.bias else y,)


def linear(layer: Any, inputs: Any, parameters: Any) -> Any:
    y = jnp.einsum("...i,oi->...o", inputs[0], parameters["weight"])
    return biased(layer, y, parameters)


def bilinear(layer: Any, inputs: Any, parameters: Any) -> Any:
    outer = inputs[0][..., :, None] * inputs[1][..., None, :]
    return (jnp.tensordot(outer, parameters["weight"], ((-2, -1), (1, 2))) + (parameters["bias"] if layer.bias else 0),)


def lengths(layer: Any) -> Any:
    """For each axis, how far the kernel reaches beyond its first element."""
    return [d * (k - 1) for d, k in zip(layer.dilation, layer.kernel_size)]


def convolution(layer: Any, inputs: Any, parameters: Any) -> Any:
    if layer.padding == "same":
        around = [(reach // 2, reach - reach // 2) for reach in lengths(layer)]
    else:
        numbers = (0,) * len(layer.kernel_size) if layer.padding == "valid" else layer.padding
        around = [(p, p) for p in numbers]
    spatial = "DHW"[-len(around) :]
    y = jax.lax.conv_general_dilated(
        jnp.pad(inputs[0], [(0, 0), (0, 0), *around], mode=PAD[layer.padding_mode]),
        parameters["weight"],
        window_strides=layer.stride,
        padding="VALID",
        rhs_dilation=layer.dilation,
        dimension_numbers=("NC" + spatial, "OI" + spatial, "NC" + spatial),
        feature_group_count=layer.groups,
    )
    return biased(layer, y, parameters, len(around))


def transposed(layer: Any, inputs: Any, parameters: Any) -> Any:
    """A convolution, by the flipped kernel, of the input with ``stride - 1`` zeros between its elements."""
    (x,), weight = inputs, parameters["weight"]
    axes = len(layer.kernel_size)
    spatial = "DHW"[-axes:]
    by_group = weight.reshape(layer.groups, -1, *weight.shape[1:]).swapaxes(1, 2)
    kernel = jnp.flip(by_group.reshape(-1, by_group.shape[2], *layer.kernel_size), range(2, 2 + axes))
    least = [
        (n - 1) * s - 2 * p + r + 1 for n, s, p, r in zip(x.shape[2:], layer.stride, layer.padding, lengths(layer))
    ]
    size = layer.output_size or [n + extra for n, extra in zip(least, layer.output_padding)]
    y = jax.lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(1,) * axes,
        padding=[(r - p, r - p + n - m) for r, p, n, m in zip(lengths(layer), layer.padding, size, least)],
        lhs_dilation=layer.stride,
        rhs_dilation=layer.dilation,
        dimension_numbers=("NC" + spatial, "OI" + spatial, "NC" + spatial),
        feature_group_count=layer.groups,
    )
    return biased(layer, y, parameters, axes)


IN_JAX = {
    Linear: linear,
    Bilinear: bilinear,
    Conv1d: convolution,
    Conv2d: convolution,
    Conv3d: convolution,
    ConvTranspose1d: transposed,
    ConvTranspose2d: transposed,
    ConvTranspose3d: transposed,
}
NOT_IN_JAX: dict[type, str] = {}
