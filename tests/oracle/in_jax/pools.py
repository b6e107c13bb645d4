"""Pooling and unpooling: shifted slices for sliding windows, one dimension after the other for the rest."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hookcheck.topology.layers.average_pool import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
)
from hookcheck.topology.layers.fractional_pool import FractionalMaxPool2d, FractionalMaxPool3d
from hookcheck.topology.layers.lp_pool import LPPool1d, LPPool2d, LPPool3d
from hookcheck.topology.layers.max_pool import (
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from hookcheck.topology.layers.unpool import MaxUnpool1d, MaxUnpool2d, MaxUnpool3d


def spatial(setting: Any, x: Any) -> tuple[Any, ...]:
    """A setting for each spatial dimension of ``x``."""
    return setting if isinstance(setting, tuple) else (setting,) * (x.ndim - 2)


def count(n: int, k: int, s: int, p: int, d: int, ceil: bool) -> int:
    """How many windows there are, found by laying them down one after the other."""
    windows, start = 0, -p
    last = n + p - 1
    while (start < n and start - s + d * (k - 1) < last) if ceil and windows else start + d * (k - 1) <= last:
        windows, start = windows + 1, start + s
    return windows


def shifted(x: Any, layer: Any, fill: float) -> Any:
    """(K, N, C, windows of each dimension): what lies at each kernel offset of each window, ``fill`` off the input."""
    kernel = spatial(layer.kernel_size, x)
    stride = spatial(layer.stride or layer.kernel_size, x)
    padding, dilation = (spatial(getattr(layer, name, plain), x) for name, plain in (("padding", 0), ("dilation", 1)))
    sizes = list(zip(x.shape[2:], kernel, stride, padding, dilation))
    counts = [count(*size, layer.ceil_mode) for size in sizes]
    reach = [(c - 1) * s + d * (k - 1) + 1 for c, (_, k, s, _, d) in zip(counts, sizes)]
    margin = [(p, max(0, r - n - p)) for r, (n, _, _, p, _) in zip(reach, sizes)]
    padded = jnp.pad(x, [(0, 0), (0, 0), *margin], constant_values=fill)
    return jnp.stack(
        [
            padded[
                (..., *(slice(i * d, i * d + (c - 1) * s + 1, s) for i, c, s, d in zip(at, counts, stride, dilation)))
            ]
            for at in product(*map(range, kernel))
        ]
    )


def max_pool(layer: Any, inputs: Any, _: Any) -> Any:
    return (shifted(inputs[0], layer, -math.inf).max(0),)


def avg_pool(layer: Any, inputs: Any, _: Any) -> Any:
    (x,) = inputs
    counted = jnp.ones(x.shape)
    if layer.count_include_pad:  # then the padding counts as input, of zeros
        margin = [(0, 0), (0, 0), *((p, p) for p in spatial(layer.padding, x))]
        grown = type(layer)(layer.kernel_size, layer.stride or layer.kernel_size, 0, layer.ceil_mode)
        counted = shifted(jnp.pad(counted, margin, constant_values=1), grown, 0.0).sum(0)
    else:
        counted = shifted(counted, layer, 0.0).sum(0)
    summed = shifted(x, layer, 0.0).sum(0)
    cut = counted[tuple(map(slice, summed.shape))]
    return (summed / (getattr(layer, "divisor_override", None) or cut),)


def lp_pool(layer: Any, inputs: Any, _: Any) -> Any:
    powers = shifted(inputs[0] ** layer.norm_type, layer, math.nan)
    return ((jnp.nanmean(powers, 0) * len(powers)) ** (1 / layer.norm_type),)


def adaptive(reduction: Any) -> Any:
    """Reduces dimension after dimension over its windows."""

    def pool(layer: Any, inputs: Any, _: Any) -> Any:
        (x,) = inputs
        for axis, size in enumerate(spatial(layer.output_size, x), start=2):
            n, m = x.shape[axis], size or x.shape[axis]
            edges = [(math.floor(i * n / m), math.ceil((i + 1) * n / m)) for i in range(m)]
            parts = [reduction(x[(slice(None),) * axis + (slice(a, b),)], axis) for a, b in edges]
            x = jnp.stack(parts, axis)
        return (x,)

    return pool


def fractional(layer: Any, inputs: Any, _: Any) -> Any:
    """The maximum over dimension after dimension; each plane has its own starts."""
    (x,) = inputs
    dims = x.ndim - 2
    for axis, (k, m) in enumerate(zip(spatial(layer.kernel_size, x), spatial(layer.output_size, x))):
        rows = jnp.moveaxis(x, axis + 2, -1)
        last = rows.shape[-1] - k
        of_plane = [
            [begins(last, m, plane[1 - axis if dims == 2 else axis]) for plane in planes] for planes in layer.samples
        ]
        at = np.array(of_plane)[..., None] + np.arange(k)
        at = at.reshape(*at.shape[:2], *(1,) * (dims - 1), m * k)
        held = jnp.take_along_axis(rows, jnp.broadcast_to(at, (*rows.shape[:-1], m * k)), -1)
        x = jnp.moveaxis(held.reshape(*rows.shape[:-1], m, k).max(-1), -1, axis + 2)
    return (x,)


def begins(last: int, windows: int, u: float) -> list[int]:
    """Where the windows of a dimension start."""
    return [int((i + u) * last / (windows - 1)) - int(u * last / (windows - 1)) for i in range(windows - 1)] + [last]


def unpool(layer: Any, inputs: Any, _: Any) -> Any:
    x, at = inputs
    kernel, padding = spatial(layer.kernel_size, x), spatial(layer.padding, x)
    stride = spatial(layer.stride or layer.kernel_size, x)
    plain = [s * (n - 1) + k - 2 * p for n, k, s, p in zip(x.shape[2:], kernel, stride, padding)]
    extent = layer.output_size or plain
    batch, channel = np.indices((*x.shape[:2], 1))[:2]
    flat = jnp.zeros((*x.shape[:2], math.prod(extent)))
    filled = flat.at[batch, channel, at.reshape(*x.shape[:2], -1)].set(x.reshape(*x.shape[:2], -1))
    return (filled.reshape(*x.shape[:2], *extent),)


def compiled(function: Any) -> Any:
    """The function compiled as a whole: one by one its many small steps take far longer."""
    return lambda layer, inputs, _: jax.jit(lambda x: function(layer, [x, *inputs[1:]], {}))(inputs[0])


POOLS: dict[type, Any] = {
    **dict.fromkeys((MaxPool1d, MaxPool2d, MaxPool3d), max_pool),
    **dict.fromkeys((AvgPool1d, AvgPool2d, AvgPool3d), avg_pool),
    **dict.fromkeys((LPPool1d, LPPool2d, LPPool3d), lp_pool),
    **dict.fromkeys((AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d), adaptive(jnp.mean)),
    **dict.fromkeys((AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d), adaptive(jnp.max)),
    **dict.fromkeys((FractionalMaxPool2d, FractionalMaxPool3d), fractional),
    **dict.fromkeys((MaxUnpool1d, MaxUnpool2d, MaxUnpool3d), unpool),
}
IN_JAX = {kind: compiled(function) for kind, function in POOLS.items()}
NOT_IN_JAX: dict[type, str] = {}
