"""Paddings, reshapes, shuffles, sliding blocks, interpolation, embeddings and distances."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.ndimage import map_coordinates

from hookcheck.topology.layers import padding
from hookcheck.topology.layers.distance import CosineSimilarity, PairwiseDistance
from hookcheck.topology.layers.embedding import Embedding, EmbeddingBag
from hookcheck.topology.layers.folding import Fold, Unfold
from hookcheck.topology.layers.shuffling import ChannelShuffle, PixelShuffle, PixelUnshuffle
from hookcheck.topology.layers.structure import Flatten, Unflatten
from hookcheck.topology.layers.upsampling import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d


def each(setting: Any, count: int) -> tuple[Any, ...]:
    return setting if isinstance(setting, tuple) else (setting,) * count


def pad(mode: str) -> Any:
    def padded(layer: Any, inputs: Any, parameters: Any) -> Any:
        (x,) = inputs
        numbers = each(layer.padding, 2 * (x.ndim - 2))
        sides = [(0, 0), (0, 0), *reversed([(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)])]
        if mode == "constant":
            value = jnp.asarray(getattr(layer, "value", 0.0), x.dtype)
            return (jax.lax.pad(x, value, [(low, high, 0) for low, high in sides]),)
        return (jnp.pad(x, sides, mode=mode),)

    return padded


def flatten(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    end = layer.end_dim % x.ndim
    for _ in range(end - layer.start_dim % x.ndim):  # joins the last two axes of the range, again and again
        x = jax.lax.collapse(x, end - 1, end + 1)
        end -= 1
    return (x,)


def unflatten(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    axis = layer.dim % x.ndim
    parts = jnp.moveaxis(x, axis, -1).reshape(*(n for i, n in enumerate(x.shape) if i != axis), *layer.unflattened_size)
    count = len(layer.unflattened_size)
    return (jnp.moveaxis(parts, range(-count, 0), range(axis, axis + count)),)


def pixel_shuffle(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,), r = inputs, layer.upscale_factor
    rows, columns = jnp.arange(x.shape[2] * r), jnp.arange(x.shape[3] * r)
    channels = jnp.arange(x.shape[1] // r**2)[:, None, None] * r**2 + (rows % r)[:, None] * r + columns % r
    return (x[:, channels, (rows // r)[:, None], columns // r],)


def pixel_unshuffle(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,), r = inputs, layer.downscale_factor
    shifted = [x[:, :, i::r, j::r] for i in range(r) for j in range(r)]
    return (jnp.stack(shifted, 2).reshape(len(x), -1, x.shape[2] // r, x.shape[3] // r),)


def channel_shuffle(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    place = jnp.arange(x.shape[1])
    return (x[:, place % layer.groups * (x.shape[1] // layer.groups) + place // layer.groups],)


def patches(layer: Any, image: Any) -> Any:
    columns = jax.lax.conv_general_dilated_patches(
        image,
        each(layer.kernel_size, 2),
        each(layer.stride, 2),
        [(p, p) for p in each(layer.padding, 2)],
        rhs_dilation=each(layer.dilation, 2),
    )
    return columns.reshape(*columns.shape[:2], -1)


def unfold(layer: Any, inputs: Any, parameters: Any) -> Any:
    return (patches(layer, inputs[0]),)


def fold(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    kh, kw = each(layer.kernel_size, 2)
    blank = jnp.zeros((len(x), x.shape[1] // (kh * kw), *each(layer.output_size, 2)), x.dtype)
    return jax.vjp(lambda image: patches(layer, image), blank)[1](x)


def cubic(x: Any, at: Any, axis: int) -> Any:
    first, a = jnp.floor(at).astype(int), -0.75
    t = at - first
    weights = (
        a * (t**3 - 2 * t**2 + t),
        (a + 2) * t**3 - (a + 3) * t**2 + 1,
        -(a + 2) * t**3 + (2 * a + 3) * t**2 - a * t,
        a * (t**2 - t**3),
    )
    x = jnp.moveaxis(x, axis, -1)
    taps = [x[..., jnp.clip(first + i, 0, x.shape[-1] - 1)] for i in (-1, 0, 1, 2)]
    return jnp.moveaxis(sum(weight * tap for weight, tap in zip(weights, taps)), -1, axis)


def resize(layer: Any, inputs: Any, parameters: Any) -> Any:
    (x,) = inputs
    mode, aligned, recomputed = layer.way()
    places = []
    for axis, n in enumerate(x.shape[2:]):
        factor = each(layer.scale_factor, x.ndim)[axis]
        m = each(layer.size, x.ndim)[axis] if factor is None else int(n * factor)
        ratio = n / m if factor is None or recomputed else 1 / factor
        if aligned:
            places.append(jnp.linspace(0, n - 1, m) if m > 1 else jnp.zeros(1))
        elif mode.startswith("nearest"):
            places.append(jnp.floor(jnp.arange(m) * ratio + (ratio / 2 if mode == "nearest-exact" else 0)))
        else:
            places.append(jnp.arange(m) * ratio + (ratio - 1) / 2)
    if mode == "bicubic":
        return (cubic(cubic(x, places[0], 2), places[1], 3),)
    grid = jnp.meshgrid(*places, indexing="ij")
    read = jax.vmap(jax.vmap(lambda image: map_coordinates(image, grid, order=1, mode="nearest")))
    return (read(x),)


def look_up(layer: Any, indices: Any, weight: Any) -> Any:
    rows = weight[indices]
    if layer.scale_grad_by_freq:
        share = rows / (indices[..., None] == indices.reshape(-1)).sum(-1)[..., None]
        rows = share + jax.lax.stop_gradient(rows - share)
    if layer.padding_idx is not None:
        padded = (indices == layer.padding_idx % layer.num_embeddings)[..., None]
        rows = jnp.where(padded, jax.lax.stop_gradient(rows), rows)
    return rows


def embedding(layer: Any, inputs: Any, parameters: Any) -> Any:
    return (look_up(layer, inputs[0], parameters["weight"]),)


def embedding_bag(layer: Any, inputs: Any, parameters: Any) -> Any:
    x = inputs[0]
    if x.ndim == 2:
        ends = [(i + 1) * x.shape[1] for i in range(len(x))]
    else:
        ends = [int(i) for i in inputs[1][1:]] + ([] if layer.include_last_offset else [len(x)])
    rows = look_up(layer, x, parameters["weight"]).reshape(-1, layer.embedding_dim)
    if layer.weighted:
        rows = rows * inputs[-1].reshape(-1, 1)
    padding = None if layer.padding_idx is None else layer.padding_idx % layer.num_embeddings
    bags = []
    for start, end in zip([0, *ends], ends):
        held = [i for i in range(start, end) if x.reshape(-1)[i] != padding]
        reduced = {"sum": jnp.sum, "mean": jnp.mean, "max": jnp.max}[layer.mode]
        bags.append(reduced(rows[jnp.array(held)], 0) if held else jnp.zeros(layer.embedding_dim))
    return (jnp.stack(bags),)


def cosine_similarity(layer: Any, inputs: Any, parameters: Any) -> Any:
    units = [x / jnp.maximum(jnp.linalg.norm(x, axis=layer.dim, keepdims=True), layer.eps) for x in inputs]
    return ((units[0] * units[1]).sum(layer.dim),)


def pairwise_distance(layer: Any, inputs: Any, parameters: Any) -> Any:
    return (jnp.linalg.norm(inputs[0] - inputs[1] + layer.eps, ord=layer.p, axis=1, keepdims=layer.keepdim),)


IN_JAX = {
    **{
        getattr(padding, f"{name}Pad{axes}d"): pad(mode)
        for name, mode in {
            "Zero": "constant",
            "Constant": "constant",
            "Reflection": "reflect",
            "Replication": "edge",
            "Circular": "wrap",
        }.items()
        for axes in (1, 2, 3)
    },
    Flatten: flatten,
    Unflatten: unflatten,
    PixelShuffle: pixel_shuffle,
    PixelUnshuffle: pixel_unshuffle,
    ChannelShuffle: channel_shuffle,
    Unfold: unfold,
    Fold: fold,
    Upsample: resize,
    UpsamplingNearest2d: resize,
    UpsamplingBilinear2d: resize,
    Embedding: embedding,
    EmbeddingBag: embedding_bag,
    CosineSimilarity: cosine_similarity,
    PairwiseDistance: pairwise_distance,
}
NOT_IN_JAX: dict[type, str] = {}
