"""Multi-head attention: one step, for torch calls none of its submodules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from hypothesis.strategies import DrawFn, booleans, integers, sampled_from

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.batched import Axis, BatchedSequence
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.primitive import Array, Arrays, Gradients, Layer, Operand, Shape
from hookcheck.topology.tree import Literal, Tree

MASKS = {"bool": "mask", "float": "real"}
"""The kinds of mask, and the domain that each one's numbers come from."""

MASK_AXES: dict[str, Axis] = {"attn_mask": None, "key_padding_mask": 0}
"""Where each mask has the axis of the batch."""

PROJECTIONS = ("q_proj_weight", "k_proj_weight", "v_proj_weight")

Item = TypeVar("Item")


def divisors(number: int) -> list[int]:
    """What divides a positive number, smallest first."""
    return [d for d in range(1, number + 1) if number % d == 0]


def drawn_masks(
    draw: DrawFn, kinds: tuple[str, ...], extent: tuple[int, int, int, int]
) -> tuple[tuple[str, str], tuple[Operand, ...]]:
    """The kinds of an attention mask and of a key padding mask, empty where there is none, and those that there are.

    ``extent`` is of batch, heads, queries and keys. Both are of one kind, as torch asks.
    """
    batch, heads, queries, keys = extent
    kind = draw(sampled_from(kinds)) if kinds else ""
    attention, padding = draw(sampled_from(["", kind])), draw(sampled_from(["", kind]))
    whole = (queries, keys)
    shapes = [(draw(sampled_from([whole, (batch * heads, *whole)])), attention)] if attention else []
    shapes += [((batch, keys), padding)] if padding else []
    return (attention, padding), tuple(Operand(shape, MASKS[kind]) for shape, kind in shapes)


class _Attended(NamedTuple):
    """What attention computes on its way, batch first: (N, ·, E) unsplit, (N, heads, ·, E / heads) split."""

    given: tuple[Array, ...]
    split: tuple[Array, ...]
    weights: Array
    merged: Array


@dataclass(frozen=True)
class MultiheadAttention(BatchedSequence):
    """``nn.MultiheadAttention``: query (L, N, E), key (S, N, kdim), value (S, N, vdim) to output (L, N, E) and weights.

    Batch and sequence change places under ``batch_first``. For each head ``A = softmax(Q Kᵀ / √d + mask)`` with
    ``d = E / num_heads``, ``Q = q W_qᵀ + b_q``, ``K`` and ``V`` likewise, each with ``bias_k`` or ``bias_v`` and then
    with a row of zeros appended if asked for; a bool mask stands for ``−∞`` where it is True. The output is the heads'
    ``A V`` side by side, times ``W_oᵀ``, plus ``b_o``; the weights are ``A`` (N, heads, L, S'), or its mean over heads.
    With cotangents ``v`` and ``w``, for each head: ``dO = v W_o``, ``dV = Aᵀ dO``, ``dA = dO Vᵀ + w``,
    ``ds = A (dA − Σ_s dA A)``, ``dQ = ds K / √d``, ``dK = dsᵀ Q / √d``, and ``ds`` summed is that of a float mask.
    ``Σ_s dA A`` is worked out as ``Σ dO (A V) + Σ_s w A``, as fused kernels do: where one weight is all but 1, ``ds``
    is then what rounding leaves, and not just 0.
    ``sources`` says how many tensors are given: 3; 2, the second one key and value; or 1, which is all three.
    Sources: the documentation of ``torch.nn.MultiheadAttention``; Vaswani et al., arXiv:1706.03762.
    """

    keywords = ("query", "key", "value")
    separate = True
    embed_dim: int
    num_heads: int
    bias: bool = True
    add_bias_kv: bool = False
    add_zero_attn: bool = False
    kdim: int | None = None
    vdim: int | None = None
    batch_first: bool = False
    sources: int = 3
    attn_mask: str = ""
    key_padding_mask: str = ""
    need_weights: bool = True
    average_attn_weights: bool = True
    unbatched: bool = False

    @property
    def since(self) -> str:
        """Float key padding came with 2.0, weights of each head with 1.11; with 1.9 ``batch_first`` and no ``b_o``."""
        if self.key_padding_mask == "float":
            return "2.0"
        if not self.average_attn_weights:
            return "1.11"
        return "1.9" if self.batch_first or not self.bias else "1.7"

    def axes_in(self, count: int) -> Iterable[Axis]:
        """The sequences'; the first of padding; an attention mask is for one sample, or has the heads there too."""
        return *(self.first_axis,) * (count - len(self._masks)), *(MASK_AXES[name] for name in self._masks)

    @property
    def axes_out(self) -> Iterable[Axis]:
        """The sequence's, and the first of the weights."""
        return self.first_axis, 0

    @classmethod
    def fitting_sequence(cls, draw: DrawFn, shape: Shape, batch_first: bool) -> tuple[Layer, tuple[Operand, ...]]:
        """Heads that divide the features, one to four keys and widths of their own where they are given, any masks."""
        embed, sources = shape[-1], draw(sampled_from([3, 2, 1]))
        batch, length = shape[:2] if batch_first else (shape[1], shape[0])
        keys = length if sources == 1 else draw(integers(1, 4))
        widths = [draw(sampled_from([None, 1, 2, 3])) for _ in range(sources - 1)]
        heads = draw(sampled_from(divisors(embed)))
        masks, of_masks = drawn_masks(draw, ("bool", "float"), (batch, heads, length, keys))
        layer = cls(
            embed_dim=embed,
            num_heads=heads,
            bias=draw(sampled_from([True, False])),
            add_bias_kv=draw(booleans()),
            add_zero_attn=draw(booleans()),
            kdim=widths[0] if widths else None,
            vdim=widths[-1] if widths else None,
            batch_first=batch_first,
            sources=sources,
            attn_mask=masks[0],
            key_padding_mask=masks[1],
            need_weights=draw(sampled_from([True, False])),
            average_attn_weights=draw(sampled_from([True, False])),
        )
        outer = (batch, keys) if batch_first else (keys, batch)
        given = (Operand((*outer, width or embed)) for width in widths)
        return layer, (Operand(shape), *given, *of_masks)

    def parameters(self) -> dict[str, Shape]:
        """The projections of query, key and value, stacked if all are of E features, and that of the output."""
        e = self.embed_dim
        shapes: dict[str, Shape] = {}
        if self._stacked:
            shapes["in_proj_weight"] = (3 * e, e)
        else:
            shapes.update(q_proj_weight=(e, e), k_proj_weight=(e, self.kdim or e), v_proj_weight=(e, self.vdim or e))
        if self.bias:
            shapes["in_proj_bias"] = (3 * e,)
        if self.add_bias_kv:
            shapes.update(bias_k=(1, 1, e), bias_v=(1, 1, e))
        shapes["out_proj.weight"] = (e, e)
        return {**shapes, "out_proj.bias": (e,)} if self.bias else shapes

    def source(self) -> str:
        """The constructor call."""
        usage = ("sources", "attn_mask", "key_padding_mask", "need_weights", "average_attn_weights")
        return constructor(self, *usage)

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """Query, key and value, whatever the number of sources; masks and what is wanted by keyword."""
        flags = [name for name in ("need_weights", "average_attn_weights") if not getattr(self, name)]
        masks = zip(self._masks, operands[self.sources :])
        return _three(operands[: self.sources]), (*masks, *((name, Literal(False)) for name in flags))

    def result(self, outputs: tuple[Any, ...]) -> Any:
        """``(output, weights)``, or ``(output, None)``."""
        return outputs if self.need_weights else (*outputs, None)

    def reaches(self, given: tuple[bool, ...]) -> tuple[bool, ...] | None:
        """The weights do not lead to the value, nor to parameters of the value or of the output alone."""
        if given[0]:
            return None
        unreached = ("v_proj_weight", "bias_v", "out_proj.weight", "out_proj.bias")
        masks, parameters = (True for _ in self._masks), (name not in unreached for name in self.parameters())
        return (True, True, False, *masks, *parameters)

    def value(self, *inputs: Array, **parameters: Array) -> Array | Arrays:
        """Query, key and value (or those of them that are sources) and masks to output and weights."""
        attended = self._attended(inputs, parameters)
        output = self._turned(attended.merged @ parameters["out_proj.weight"].T + parameters.get("out_proj.bias", 0.0))
        weights = attended.weights.mean(1) if self.average_attn_weights else attended.weights
        return (output, weights) if self.need_weights else output

    def pull(self, *arrays: Array, **parameters: Array) -> Gradients:
        """The gradients of the sources, of the masks (None for bool ones) and of the parameters."""
        cotangents, inputs = arrays[: 1 + self.need_weights], arrays[1 + self.need_weights :]
        given, (q, k, v), a, merged = self._attended(inputs, parameters)
        v_output, keys, scale = self._turned(cotangents[0]), given[1].shape[1], q.shape[-1] ** -0.5
        d_heads = self._split(v_output @ parameters["out_proj.weight"])
        of_weights = self._of_weights(cotangents)
        mean = (d_heads * self._split(merged)).sum(-1, keepdims=True) + (a * of_weights).sum(-1, keepdims=True)
        ds = a * (d_heads @ _transposed(v) + of_weights - mean)
        whole = [_merged(d) for d in (ds @ k * scale, _transposed(ds) @ q * scale, _transposed(a) @ d_heads)]
        projected = [whole[0], *(d[:, :keys] for d in whole[1:])]
        gradients = {
            **self._of_projections([_outer(d, x) for d, x in zip(projected, given)]),
            "in_proj_bias": np.concatenate([d.sum((0, 1)) for d in projected]),
            **{name: d[:, keys : keys + 1].sum(0, keepdims=True) for name, d in zip(("bias_k", "bias_v"), whole[1:])},
            "out_proj.weight": _outer(v_output, merged),
            "out_proj.bias": v_output.sum((0, 1)),
        }
        of_given = [self._turned(d @ w) for d, w in zip(projected, self._weights(parameters))]
        last = len(inputs) - len(self._masks) - 1
        sources = (*of_given[:last], sum(of_given[last + 1 :], of_given[last]))
        masks = (self._of_mask(name, mask, ds[..., :keys]) for name, mask in zip(self._masks, inputs[last + 1 :]))
        return *sources, *masks, {name: gradients[name] for name in parameters}

    @property
    def _masks(self) -> tuple[str, ...]:
        """The names of the masks that are given, in order."""
        return tuple(name for name in MASK_AXES if getattr(self, name))

    @property
    def _stacked(self) -> bool:
        """Whether the projections of query, key and value are one parameter."""
        return {self.kdim, self.vdim} <= {None, self.embed_dim}

    def _attended(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> _Attended:
        count = len(inputs) - len(self._masks)
        given = tuple(map(self._turned, _three(inputs[:count])))
        biases = np.split(parameters.get("in_proj_bias", np.zeros(3 * self.embed_dim, given[0].dtype)), 3)
        projected = [x @ w.T + b for x, w, b in zip(given, self._weights(parameters), biases)]
        row = (len(projected[0]), 1, self.embed_dim)
        for index, name in enumerate(("bias_k", "bias_v"), 1):
            appended = [np.broadcast_to(parameters[name], row)] if self.add_bias_kv else []
            appended += [np.zeros(row, given[0].dtype)] if self.add_zero_attn else []
            projected[index] = np.concatenate((projected[index], *appended), 1)
        q, k, v = map(self._split, projected)
        scores = q @ _transposed(k) * q.shape[-1] ** -0.5
        for name, mask in zip(self._masks, inputs[count:]):
            added = np.where(mask, -np.inf, 0.0) if mask.dtype == bool else mask
            scores[..., : mask.shape[-1]] += added.reshape(self._room(name, mask.shape))
        a = np.exp(scores - scores.max(-1, keepdims=True))
        a /= a.sum(-1, keepdims=True)
        return _Attended(given, (q, k, v), a, _merged(a @ v))

    def _weights(self, parameters: dict[str, Array]) -> list[Array]:
        """The projections of query, key and value."""
        return (
            np.split(parameters["in_proj_weight"], 3) if self._stacked else [parameters[name] for name in PROJECTIONS]
        )

    def _of_projections(self, gradients: list[Array]) -> dict[str, Array]:
        return {"in_proj_weight": np.concatenate(gradients)} if self._stacked else dict(zip(PROJECTIONS, gradients))

    def _of_weights(self, cotangents: tuple[Array, ...]) -> Array:
        """The cotangent of each head's weights."""
        if not self.need_weights:
            return np.zeros(1, cotangents[0].dtype)
        return cotangents[1][:, None] / self.num_heads if self.average_attn_weights else cotangents[1]

    def _room(self, name: str, shape: Shape) -> Shape:
        """A mask's shape among (N, heads, L, S)."""
        if name == "key_padding_mask":
            return (shape[0], 1, 1, shape[1])
        return (1, 1, *shape) if len(shape) == 2 else (-1, self.num_heads, *shape[1:])

    def _of_mask(self, name: str, mask: Array, ds: Array) -> Array | None:
        """The gradient of a float mask, given that of the scores."""
        shared = tuple(axis for axis, size in enumerate(self._room(name, mask.shape)) if size == 1)
        return None if mask.dtype == bool else ds.sum(shared).reshape(mask.shape)

    def _turned(self, x: Array) -> Array:
        """Batch first, or back."""
        return x if self.batch_first else x.swapaxes(0, 1)

    def _split(self, x: Array) -> Array:
        """(N, T, E) to (N, heads, T, E / heads)."""
        return x.reshape(*x.shape[:2], self.num_heads, -1).swapaxes(1, 2)

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """The product of the output's rows, seen as a sequence; behind it the axes exchanged for ``batch_first``.

        Up to 1.11 that was Linear's on three dimensions, the addition of the bias.
        """
        v = step.v
        if self.unbatched:
            return step.view(np.expand_dims(v, 0 if step.slot else 1), "otherwise")
        if step.slot:
            n, *sides = v.shape
            if not self.average_attn_weights:
                return step.view(v.reshape(n * self.num_heads, *sides[1:]), "otherwise")
            if step.release < (2, 0):
                return ((step.inner(v / self.num_heads), None),)
            return step.alone(np.repeat(v[:, None] / self.num_heads, self.num_heads, 1))
        if self.batch_first:
            return step.view(v.swapaxes(0, 1), "otherwise")
        if step.release < (1, 12) and self.bias:
            return ((step.inner(v, *step.floating[:-1]), step.of("out_proj.bias")),)
        return step.view(v.reshape(-1, self.embed_dim))


def _merged(x: Array) -> Array:
    """(N, heads, T, E / heads) to (N, T, E)."""
    x = x.swapaxes(1, 2)
    return x.reshape(*x.shape[:2], -1)


def _transposed(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def _outer(d: Array, x: Array) -> Array:
    """``Σ d xᵀ`` over batch and sequence."""
    return np.tensordot(d, x, ((0, 1), (0, 1)))


def _three(given: tuple[Item, ...]) -> tuple[Item, ...]:
    """Query, key and value: the last of those given stands for what is not."""
    return (*given, *given[-1:] * (3 - len(given)))
