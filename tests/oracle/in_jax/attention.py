"""Multi-head attention, one element of the batch and one head at a time."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from hookcheck.topology.layers.attention import MultiheadAttention


def attention(layer: Any, inputs: Any, parameters: Any) -> Any:
    given = list(inputs[: layer.sources])
    masks = list(inputs[layer.sources :])
    q, k, v = {1: given * 3, 2: [*given, *given[1:]], 3: given}[layer.sources]
    axis = 0 if layer.batch_first else 1
    e, heads = layer.embed_dim, layer.num_heads
    width = e // heads
    outputs, weights = [], []
    for n in range(q.shape[axis]):
        rows = [jnp.take(x, n, axis) for x in (q, k, v)]
        for i, name in enumerate("qkv"):
            if "in_proj_weight" in parameters:
                w = parameters["in_proj_weight"][i * e : (i + 1) * e]
            else:
                w = parameters[f"{name}_proj_weight"]
            b = parameters["in_proj_bias"][i * e : (i + 1) * e] if layer.bias else 0
            rows[i] = jnp.einsum("ti,oi->to", rows[i], w) + b
            if i and layer.add_bias_kv:
                rows[i] = jnp.vstack([rows[i], parameters[f"bias_{name}"][0]])
            if i and layer.add_zero_attn:
                rows[i] = jnp.pad(rows[i], ((0, 1), (0, 0)))
        sides = []
        for head in range(heads):
            qh, kh, vh = (x[:, head * width : (head + 1) * width] for x in rows)
            scores = jnp.einsum("ld,sd->ls", qh, kh) / jnp.sqrt(width)
            left = iter(masks)
            for name in ("attn_mask", "key_padding_mask"):
                if getattr(layer, name):
                    mask = jnp.asarray(next(left))
                    if name == "key_padding_mask":
                        mask = jnp.broadcast_to(mask[n], (len(scores), mask.shape[1]))
                    elif mask.ndim == 3:
                        mask = mask[n * heads + head]
                    mask = jnp.pad(mask, ((0, 0), (0, scores.shape[1] - mask.shape[1])))
                    scores = jnp.where(mask, -jnp.inf, scores) if mask.dtype == bool else scores + mask
            a = jax.nn.softmax(scores, -1)
            sides.append(a @ vh)
            weights.append(a)
        o = jnp.concatenate(sides, -1) @ parameters["out_proj.weight"].T
        outputs.append(o + parameters["out_proj.bias"] if layer.bias else o)
    output = jnp.stack(outputs, axis)
    if not layer.need_weights:
        return (output,)
    by_head = jnp.stack(weights).reshape(-1, heads, *weights[0].shape)
    return output, by_head.mean(1) if layer.average_attn_weights else by_head


IN_JAX = {MultiheadAttention: attention}
NOT_IN_JAX: dict[type, str] = {}
