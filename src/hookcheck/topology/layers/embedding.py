"""Tables of vectors that are looked up by index: the gradient of a row adds up over the places that read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, NodeGradient, Step
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.primitive import MOST, Array, Gradients, Layer, Operand, Shape, SingleStep
from hookcheck.topology.tree import Tree


class _Table(SingleStep):
    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    scale_grad_by_freq: bool

    def parameters(self) -> dict[str, Shape]:
        """``weight`` (num_embeddings, embedding_dim)."""
        return {"weight": (self.num_embeddings, self.embedding_dim)}

    def counted(self, indices: Array) -> Array:
        """Which of the indices are not ``padding_idx``."""
        return np.not_equal(indices, -1 if self.padding_idx is None else self.padding_idx % self.num_embeddings)

    def gathered(self, indices: Array, d_rows: Array) -> Array:
        """The gradient of ``weight``, given that of every row that was read: (n,) and (n, embedding_dim)."""
        if self.scale_grad_by_freq:
            d_rows = d_rows / np.bincount(indices, minlength=self.num_embeddings)[indices][:, None].astype(d_rows.dtype)
        d_weight = np.zeros((self.num_embeddings, self.embedding_dim), d_rows.dtype)
        counted = self.counted(indices)
        np.add.at(d_weight, indices[counted], d_rows[counted])
        return d_weight


@dataclass(frozen=True)
class Embedding(_Table):
    """``nn.Embedding``: indices ``x`` (...) to ``y`` (..., embedding_dim), ``y[i] = W[x[i]]``.

    ``dW[k]`` is the sum of ``v[i]`` over all ``i`` with ``x[i] = k``: zero for ``padding_idx``, and with
    ``scale_grad_by_freq`` divided by the number of such ``i``. With ``sparse`` its gradient is a sparse tensor of the
    same numbers, without ``scale_grad_by_freq``; the family ``tensor-class`` is about it. ``max_norm`` is left out,
    since it changes the weight in forward.

    Source: the documentation of ``torch.nn.Embedding``.
    """

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None = None
    scale_grad_by_freq: bool = False
    sparse: bool = False

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any that is not empty, and has room for one more dimension."""
        return len(shape) < MOST and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A table of two to five rows."""
        rows = draw(st.integers(2, 5))
        padding = draw(st.sampled_from([None, 0, rows - 1, -1]))
        return cls(rows, draw(st.integers(1, 3)), padding, draw(st.booleans())), (Operand(shape, "index", rows),)

    @property
    def since(self) -> str:
        """1.8.0 gives zeros for ``padding_idx``, whatever the row holds."""
        return "1.7" if self.padding_idx is None else "1.9"

    @property
    def defined(self) -> bool:
        """``padding_idx`` and frequencies are documented to change the gradient, and nothing else."""
        return self.padding_idx is not None or self.scale_grad_by_freq

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)

    def value(self, x: Array, weight: Array) -> Array:
        """``x`` (...) to ``y`` (..., embedding_dim)."""
        return weight[x]

    def pull(self, v: Array, x: Array, weight: Array) -> Gradients:
        """``dW`` (num_embeddings, embedding_dim); the indices have no gradient."""
        return None, {"weight": self.gathered(x.reshape(-1), v.reshape(-1, self.embedding_dim))}


@dataclass(frozen=True)
class EmbeddingBag(_Table):
    """``nn.EmbeddingBag``: bags of indices to ``y`` (bags, embedding_dim), the sum, mean or maximum of each bag's rows.

    Inputs are ``x`` (bags, n); or ``x`` (n,) and ``offsets``, where each bag starts (and, with ``include_last_offset``,
    where the last one ends); and for a sum, if ``weighted``, a factor for each index as ``per_sample_weights``. Indices
    equal to ``padding_idx`` are in no bag; an empty bag gives zeros. With ``M[b, i]`` the factor of index ``i`` in bag
    ``b``, ``y = M W[x]``: the rows read have the gradient ``Mᵀ v``, the factors ``v[b] · W[x[i]]``. A maximum has its
    gradient where it was read, the first time. With ``sparse`` the gradient of ``weight`` is a sparse tensor of the
    same numbers, without ``scale_grad_by_freq`` and of no maximum; the family ``tensor-class`` is about it.
    ``max_norm`` is left out. Source: the documentation of ``torch.nn.EmbeddingBag``.
    """

    num_embeddings: int
    embedding_dim: int
    scale_grad_by_freq: bool = False
    mode: str = "mean"
    include_last_offset: bool = False
    padding_idx: int | None = None
    weighted: bool = False
    sparse: bool = False

    @property
    def since(self) -> str:
        """1.9 brought padding_idx."""
        return "1.7" if self.padding_idx is None else "1.9"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(bags, n) or (n,)."""
        return len(shape) in (1, 2) and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A table of one to four rows.

        Frequencies scale a single index only, as for `Embedding`, and since torch up to 2.13 at least divides by the
        count of another index on CPU where counts differ (pytorch issue 190063).
        """
        rows = draw(st.integers(1, 4))
        mode = draw(st.sampled_from(["mean", "sum", "max"]))
        weighted = mode == "sum" and draw(st.booleans())
        last = len(shape) == 1 and draw(st.booleans())
        layer = cls(
            rows,
            draw(st.integers(1, 3)),
            mode != "max" and not weighted and _single(shape) and draw(st.booleans()),  # the first two torch refuses
            mode,
            last,
            padding_idx=draw(st.one_of(st.none(), st.integers(0, rows - 1), st.integers(-rows, -1))),
            weighted=weighted,
        )
        bags = draw(st.integers(1, 3))
        starts = Operand((bags + 1,), "bounds", shape[0]) if last else Operand((bags,), "offsets", shape[0])
        offsets = (starts,) if len(shape) == 1 else ()
        return layer, (Operand(shape, "index", rows), *offsets, *([Operand(shape)] if weighted else []))

    def source(self) -> str:
        """The constructor call."""
        return constructor(self, "weighted")

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """``(x)`` or ``(x, offsets)``, then ``per_sample_weights=``."""
        return (operands[:-1], (("per_sample_weights", operands[-1]),)) if self.weighted else (operands, ())

    def value(self, *inputs: Array, weight: Array) -> Array:
        """To ``y`` (bags, embedding_dim)."""
        rows = weight[inputs[0].reshape(-1)]
        if self.mode == "max":
            best, filled = self._best(inputs, rows)
            return np.where(filled, np.take_along_axis(rows, best, 0), 0.0)
        return self._factors(inputs, rows) @ rows

    def pull(self, v: Array, *inputs: Array, weight: Array) -> Gradients:
        """``dW``; for ``per_sample_weights`` a gradient of their shape; none for indices and offsets."""
        indices = inputs[0].reshape(-1)
        rows = weight[indices]
        if self.mode == "max":
            best, filled = self._best(inputs, rows)
            d_rows = np.zeros_like(rows)
            np.add.at(d_rows, (best, np.arange(self.embedding_dim)), v * filled)
        else:
            d_rows = self._factors(inputs, rows).T @ v
        gradients: list[Array | None] = [None] * len(inputs)
        if self.weighted:
            gradients[-1] = (self._members(inputs) * (v @ rows.T)).sum(0).reshape(inputs[0].shape)
        return *gradients, {"weight": self.gathered(indices, d_rows)}

    def _members(self, inputs: tuple[Array, ...]) -> Array:
        """Whether bag ``b`` holds the ``i``-th index: (bags, n)."""
        x = inputs[0]
        if x.ndim == 2:
            starts = np.arange(len(x)) * x.shape[1]
        else:
            starts = inputs[1][:-1] if self.include_last_offset else inputs[1]
        bag = np.searchsorted(starts, np.arange(x.size), side="right") - 1
        return (bag == np.arange(len(starts))[:, None]) & self.counted(x.reshape(-1))

    def _factors(self, inputs: tuple[Array, ...], rows: Array) -> Array:
        members = self._members(inputs).astype(rows.dtype)
        if self.weighted:
            return members * inputs[-1].reshape(-1)
        return members / np.maximum(1, members.sum(1, keepdims=True)) if self.mode == "mean" else members

    def _best(self, inputs: tuple[Array, ...], rows: Array) -> tuple[Array, Array]:
        """For each bag and each column, where the maximum was read; for each bag, whether it holds anything."""
        members = self._members(inputs)
        best = np.where(members[:, :, None], rows, -np.inf).argmax(1)
        filled: Array = members.sum(1, keepdims=True) > 0
        return best, filled

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Of the table and of the factors, one after another."""
        factors = step.of(len(step.inputs) - 1) if self.weighted else None
        if factors is not None and factors.gradient is not None:
            factors = NodeGradient(factors.gradient.reshape(-1), factors.leads)
        return ((step.of("weight"), factors),)


def _single(shape: Shape) -> bool:
    return all(side == 1 for side in shape)
