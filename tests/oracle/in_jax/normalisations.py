"""Normalisations, by mean and variance as JAX takes them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from hookcheck.topology.layers.batch_norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from hookcheck.topology.layers.normalisation import GroupNorm, LayerNorm, RMSNorm
from hookcheck.topology.layers.response_norm import CrossMapLRN2d, LocalResponseNorm


def affine(y: Any, parameters: Any) -> Any:
    """Scaled and shifted along the last axis or axes."""
    return y * parameters.get("weight", 1.0) + parameters.get("bias", 0.0)


def per_channel(y: Any, parameters: Any) -> Any:
    return (jnp.moveaxis(affine(jnp.moveaxis(y, 1, -1), parameters), -1, 1),)


def batch_norm(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    rows = jnp.moveaxis(x, 1, 0).reshape(layer.num_features, -1)
    y = jax.nn.standardize(rows, axis=1, epsilon=layer.eps)
    return per_channel(jnp.moveaxis(y.reshape(x.shape[1], x.shape[0], *x.shape[2:]), 0, 1), parameters)


def instance_norm(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    standard = jax.vmap(jax.vmap(lambda plane: (plane - plane.mean()) * jax.lax.rsqrt(plane.var() + layer.eps)))
    return per_channel(standard(x), parameters)


def group_norm(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    groups = [
        (part - jnp.mean(part, axes, keepdims=True)) / jnp.sqrt(jnp.var(part, axes, keepdims=True) + layer.eps)
        for part in jnp.split(x, layer.num_groups, axis=1)
        for axes in [tuple(range(1, x.ndim))]
    ]
    return per_channel(jnp.concatenate(groups, 1), parameters)


def layer_norm(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    axes = tuple(range(x.ndim - len(layer.normalized_shape), x.ndim))
    difference = x - jnp.mean(x, axes, keepdims=True)
    return (affine(difference / jnp.sqrt(jnp.var(x, axes, keepdims=True) + layer.eps), parameters),)


def rms_norm(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    axes = tuple(range(x.ndim - len(layer.normalized_shape), x.ndim))
    return (affine(x / jnp.sqrt(jnp.mean(jnp.square(x), axes, keepdims=True) + layer.eps), parameters),)


def response_norm(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    before, after = layer.size // 2, (layer.size - 1) // 2
    summed = jax.lax.reduce_window(
        jnp.square(x),
        0.0,
        jax.lax.add,
        window_dimensions=(1, layer.size, *(1,) * (x.ndim - 2)),
        window_strides=(1,) * x.ndim,
        padding=[(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)],
    )
    return (x / (layer.k + layer.alpha * summed / layer.size) ** layer.beta,)


IN_JAX = {
    BatchNorm1d: batch_norm,
    BatchNorm2d: batch_norm,
    BatchNorm3d: batch_norm,
    InstanceNorm1d: instance_norm,
    InstanceNorm2d: instance_norm,
    InstanceNorm3d: instance_norm,
    GroupNorm: group_norm,
    LayerNorm: layer_norm,
    RMSNorm: rms_norm,
    LocalResponseNorm: response_norm,
    CrossMapLRN2d: response_norm,
}
NOT_IN_JAX: dict[type, str] = {}
