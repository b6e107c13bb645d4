"""The functional operations between modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from hookcheck.topology.ops import (
    arithmetic,
    complex,
    contraction,
    elementwise,
    functional,
    inplace,
    joining,
    moving,
    reduction,
    tensors,
    views,
)


def of(function: Callable[..., Any]) -> Callable[[Any, Any, Any], tuple[Any]]:
    """What computes one output of the inputs alone."""
    return lambda _, inputs, __: (function(*inputs),)


def by(function: Callable[..., Any]) -> Callable[[Any, Any, Any], tuple[Any]]:
    """What computes one output of the operation's settings and the inputs."""
    return lambda op, inputs, _: (function(op, *inputs),)


def chunk(op: Any, inputs: Any, _: Any) -> Any:
    (x,) = inputs
    n = x.shape[op.dim]
    size = (n + op.count - 1) // op.count
    return tuple(jnp.split(x, list(range(size, n, size)), op.dim))


def split(op: Any, inputs: Any, _: Any) -> Any:
    parts, start = [], 0
    for size in op.sizes:
        parts.append(jax.lax.slice_in_dim(inputs[0], start, start + size, axis=op.dim % inputs[0].ndim))
        start += size
    return tuple(parts)


def unbind(op: Any, inputs: Any, _: Any) -> Any:
    return tuple(inputs[0].take(i, op.dim) for i in range(inputs[0].shape[op.dim]))


def index(op: Any, x: Any) -> Any:
    return x[tuple(slice(*item) if isinstance(item, tuple) else item for item in op.items)]


def index_fill(op: Any, x: Any, indices: Any) -> Any:
    filled = jnp.isin(jnp.arange(x.shape[op.dim]), indices)
    return jnp.where(jnp.expand_dims(filled, [i for i in range(x.ndim) if i != op.dim % x.ndim]), op.number, x)


def power(op: Any, x: Any) -> Any:
    return jax.lax.integer_pow(x, op.exponent)


def norm(op: Any, x: Any) -> Any:
    return jnp.linalg.norm(x.ravel(), ord=op.p)


def over(function: Callable[..., Any]) -> Callable[[Any, Any, Any], tuple[Any]]:
    """A reduction over dimensions."""
    return by(lambda op, x: function(x, axis=op.dims, keepdims=op.keepdim))


def scale(op: Any, x: Any) -> Any:
    return x * op.number


def clamp(op: Any, x: Any) -> Any:
    return jnp.clip(x, op.minimum, op.maximum)


def masked_fill(op: Any, x: Any, mask: Any) -> Any:
    return jnp.where(mask, op.number, x)


IN_JAX = {
    arithmetic.Add: of(jnp.add),
    arithmetic.Sub: of(jnp.subtract),
    arithmetic.Mul: of(jnp.multiply),
    arithmetic.Div: of(jnp.divide),
    arithmetic.Maximum: of(jnp.maximum),
    arithmetic.Minimum: of(jnp.minimum),
    arithmetic.Where: of(lambda a, b, mask: jnp.where(mask, a, b)),
    elementwise.Neg: of(jnp.negative),
    elementwise.Scale: by(scale),
    elementwise.Shift: by(lambda op, x: x + op.number),
    elementwise.Pow: by(power),
    elementwise.Clamp: by(clamp),
    elementwise.Exp: of(jnp.exp),
    elementwise.Log: of(jnp.log),
    elementwise.Sqrt: of(jnp.sqrt),
    elementwise.Abs: of(jnp.abs),
    elementwise.Sin: of(jnp.sin),
    functional.FunctionalReLU: of(jax.nn.relu),
    functional.FunctionalSigmoid: of(jax.nn.sigmoid),
    functional.FunctionalTanh: of(jnp.tanh),
    functional.FunctionalGELU: of(lambda x: jax.nn.gelu(x, approximate=False)),
    functional.FunctionalSoftmax: by(lambda op, x: jax.nn.softmax(x, op.dim)),
    contraction.MatMul: of(jnp.matmul),
    contraction.Bmm: of(lambda a, b: jax.lax.batch_matmul(a, b)),
    contraction.Einsum: by(lambda op, a, b: jnp.einsum(op.equation, a, b)),
    joining.Cat: by(lambda op, *xs: jnp.concatenate(xs, op.dim)),
    joining.Stack: by(lambda op, *xs: jnp.stack(xs, op.dim)),
    joining.Split: split,
    joining.Chunk: chunk,
    joining.Unbind: unbind,
    views.View: by(lambda op, x: x.reshape(op.shape)),
    views.Reshape: by(lambda op, x: x.reshape(op.shape)),
    views.Squeeze: by(lambda op, x: x.squeeze(op.dim) if x.shape[op.dim] == 1 else x),
    views.Unsqueeze: by(lambda op, x: jnp.expand_dims(x, op.dim)),
    views.Detach: of(lambda x: x),
    views.Permute: by(lambda op, x: jnp.permute_dims(x, op.dims)),
    views.Transpose: by(lambda op, x: jnp.swapaxes(x, op.a, op.b)),
    views.Expand: by(lambda op, x: jnp.broadcast_to(x, op.shape)),
    views.Narrow: by(lambda op, x: jax.lax.dynamic_slice_in_dim(x, op.start, op.length, op.dim)),
    views.Select: by(lambda op, x: jax.lax.index_in_dim(x, op.index, op.dim, keepdims=False)),
    views.Index: by(index),
    moving.Clone: of(jnp.copy),
    moving.To: by(lambda op, x: x.astype("complex128") if "complex" in op.dtype else x),
    moving.Flip: by(lambda op, x: jnp.flip(x, op.dims)),
    moving.Roll: by(lambda op, x: jnp.roll(x, op.shifts, op.dims)),
    moving.Tril: by(lambda op, x: jnp.tril(x, op.diagonal)),
    moving.MaskedFill: by(masked_fill),
    moving.Gather: by(lambda op, x, indices: jnp.take_along_axis(_cut(op, x, indices), indices, op.dim)),
    moving.AdvancedIndex: of(lambda x, indices: jnp.take(x, indices, 0)),
    tensors.AsTensor: of(lambda x: x),
    tensors.AsDense: of(lambda x: x),
    reduction.Sum: of(jnp.sum),
    reduction.Mean: of(jnp.mean),
    reduction.Max: of(jnp.max),
    reduction.Prod: of(jnp.prod),
    reduction.Norm: by(norm),
    reduction.SumOver: over(jnp.sum),
    reduction.MeanOver: over(jnp.mean),
    reduction.AMax: over(jnp.max),
    reduction.LogSumExp: over(jax.nn.logsumexp),
    reduction.MaxOver: by(lambda op, x: jnp.max(x, op.dim, keepdims=op.keepdim)),
    reduction.Cumsum: by(lambda op, x: jnp.cumsum(x, op.dim)),
    complex.Real: of(jnp.real),
    complex.Conj: of(jnp.conj),
    inplace.AddInplace: of(jnp.add),
    inplace.SubInplace: of(jnp.subtract),
    inplace.MulInplace: of(jnp.multiply),
    inplace.ScaleInplace: by(scale),
    inplace.ReLUInplace: of(jax.nn.relu),
    inplace.SigmoidInplace: of(jax.nn.sigmoid),
    inplace.ExpInplace: of(jnp.exp),
    inplace.ClampInplace: by(clamp),
    inplace.MaskedFillInplace: by(masked_fill),
    inplace.ZeroInplace: of(jnp.zeros_like),
    inplace.CopyInplace: of(lambda a, b: jnp.broadcast_to(b, a.shape)),
    inplace.IndexFillInplace: by(index_fill),
}


def _cut(op: Any, x: Any, indices: Any) -> Any:
    """What of ``x`` a gather can reach: JAX wants the other dimensions to be of one length."""
    whole = op.dim % x.ndim
    return x[tuple(slice(None) if i == whole else slice(n) for i, n in enumerate(indices.shape))]


_CONJUGATED = "jax.vjp hands on the conjugate of torch's gradient where a function is not complex differentiable"
NOT_IN_JAX: dict[type, str] = {
    complex.Complex: _CONJUGATED,
    complex.Imag: _CONJUGATED,
    complex.ViewAsReal: _CONJUGATED,
}
