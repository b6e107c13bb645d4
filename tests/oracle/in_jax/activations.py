"""Activations, softmaxes, dropouts and the identity, by the names that ``jax.nn`` has for them."""

from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp

from hookcheck.topology.layers.activation import (
    SELU,
    Hardsigmoid,
    Hardswish,
    LogSigmoid,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softsign,
    Tanh,
    Tanhshrink,
)
from hookcheck.topology.layers.adjustable import (
    CELU,
    ELU,
    GELU,
    GLU,
    Hardshrink,
    Hardtanh,
    LeakyReLU,
    PReLU,
    RReLU,
    Softplus,
    Softshrink,
    Threshold,
)
from hookcheck.topology.layers.dropout import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)
from hookcheck.topology.layers.identity import Identity
from hookcheck.topology.layers.softmax import LogSoftmax, Softmax, Softmax2d, Softmin


def of(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """The entry for a function of the layer and its one input."""
    return lambda layer, inputs, _: (function(layer, inputs[0]),)


def prelu(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,), weight = inputs, parameters["weight"]
    if layer.num_parameters == 1:
        return (jax.nn.leaky_relu(x, weight[0]),)
    channels_last = jnp.moveaxis(x, 1, -1)
    return (jnp.moveaxis(jax.nn.leaky_relu(channels_last, weight), -1, 1),)


def softplus(layer: Any, x: Any) -> Any:
    return jnp.where(x * layer.beta > layer.threshold, x, jax.nn.softplus(x * layer.beta) / layer.beta)


def dropout(layer: Any, x: Any) -> Any:
    return jnp.where(mask(layer, x), x, 0) / (1 - layer.p) if layer.p < 1 else jnp.zeros_like(x)


def alpha_dropout(layer: Any, x: Any) -> Any:
    if layer.p == 1:
        return jnp.zeros_like(x)
    low, q = -1.7580993408473766, 1 - layer.p
    a = (q + low**2 * q * (1 - q)) ** -0.5
    return a * jnp.where(mask(layer, x), x, low) - a * low * (1 - q)


def mask(layer: Any, x: Any) -> Any:
    """Elements that are kept; a channel comes with all of its elements."""
    keeps = jnp.array(layer.keeps or (True,))
    return jnp.broadcast_to(keeps[:, None], (keeps.size, x.size // keeps.size)).reshape(x.shape)


IN_JAX = {
    Sigmoid: of(lambda _, x: jax.nn.sigmoid(x)),
    Tanh: of(lambda _, x: jnp.tanh(x)),
    Tanhshrink: of(lambda _, x: x - jnp.tanh(x)),
    Softsign: of(lambda _, x: jax.nn.soft_sign(x)),
    LogSigmoid: of(lambda _, x: jax.nn.log_sigmoid(x)),
    SiLU: of(lambda _, x: jax.nn.silu(x)),
    Mish: of(lambda _, x: jax.nn.mish(x)),
    ReLU: of(lambda _, x: jax.nn.relu(x)),
    ReLU6: of(lambda _, x: jax.nn.relu6(x)),
    Hardsigmoid: of(lambda _, x: jax.nn.hard_sigmoid(x)),
    Hardswish: of(lambda _, x: jax.nn.hard_swish(x)),
    SELU: of(lambda _, x: jax.nn.selu(x)),
    ELU: of(lambda layer, x: jax.nn.elu(x, layer.alpha)),
    CELU: of(lambda layer, x: jax.nn.celu(x, layer.alpha)),
    GELU: of(lambda layer, x: jax.nn.gelu(x, approximate=layer.approximate == "tanh")),
    Softplus: of(softplus),
    LeakyReLU: of(lambda layer, x: jax.nn.leaky_relu(x, layer.negative_slope)),
    RReLU: of(lambda layer, x: jax.nn.leaky_relu(x, layer.negative_slope)),
    PReLU: prelu,
    Threshold: of(lambda layer, x: jnp.where(x > layer.threshold, x, layer.replacement)),
    Hardtanh: of(lambda layer, x: jnp.clip(x, layer.min_val, layer.max_val)),
    Hardshrink: of(lambda layer, x: jnp.where(jnp.abs(x) > layer.lambd, x, 0)),
    Softshrink: of(lambda layer, x: jnp.sign(x) * jax.nn.relu(jnp.abs(x) - layer.lambd)),
    GLU: of(lambda layer, x: jax.nn.glu(x, layer.dim)),
    Softmax: of(lambda layer, x: jax.nn.softmax(x, layer.dim)),
    Softmin: of(lambda layer, x: jax.nn.softmax(-x, layer.dim)),
    LogSoftmax: of(lambda layer, x: jax.nn.log_softmax(x, layer.dim)),
    Softmax2d: of(lambda _, x: jax.nn.softmax(x, -3)),
    Identity: of(lambda _, x: x),
    Dropout: of(dropout),
    Dropout1d: of(dropout),
    Dropout2d: of(dropout),
    Dropout3d: of(dropout),
    AlphaDropout: of(alpha_dropout),
    FeatureAlphaDropout: of(alpha_dropout),
}
NOT_IN_JAX: dict[type, str] = {}
