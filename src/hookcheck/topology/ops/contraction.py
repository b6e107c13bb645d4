"""Which operations sum over products of two tensors? Bars are complex conjugates, ᴴ a conjugated transpose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.ops.rule import Filled, companion, like, unbroadcast
from hookcheck.topology.primitive import MOST, Array, Gradients, Op, Operand, Shape


@dataclass(frozen=True)
class MatMul(Filled):
    """``a @ b``: (..., n, k) and (..., k, m) to (..., n, m), leading axes broadcast; vectors (k,) on either side.

    ``da = v bᴴ``, ``db = aᴴ v``, a vector taken for the matrix of one row (left) or one column (right) that it stands
    for. Empty tensors are left out: torch up to 1.9 raises for the gradients of some. Source: the documentation of
    ``torch.matmul``.
    """

    smooth = True
    complex_since = "1.8"
    _text = "{0} @ {1}"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On a matrix for each of the first one's, one matrix for all, or a vector."""
        k, m = shape[-1], draw(st.integers(1, 3))
        batch = companion(draw, shape[:-2])[-(MOST - 2) :]
        return cls(), (Operand(shape), Operand(draw(st.sampled_from(((k, m), (*batch, k, m), (k,))))))

    def value(self, a: Array, b: Array) -> Array:
        """``a b``."""
        return a @ b

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """``v bᴴ``, and ``aᴴ v``."""
        left, right = np.atleast_2d(a), b.reshape(-1, 1) if b.ndim == 1 else b
        v = v if a.ndim > 1 else np.expand_dims(v, -1 if b.ndim == 1 else -2)
        v = v if b.ndim > 1 else np.expand_dims(v, -1)
        da, db = v @ right.conj().swapaxes(-1, -2), left.conj().swapaxes(-1, -2) @ v
        return unbroadcast(da, left).reshape(a.shape), unbroadcast(db, right).reshape(b.shape)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """As ``at::matmul`` has it (LinearAlgebra.cpp): up to two dimensions by one Node, save that a vector before a
        matrix is made a matrix. Else ``y`` is the product of rows, of a batch, or of transposed matrices in another
        shape: which, releases and layout decide. Up to 1.9 the last of these is copied by a Node of two inputs.
        """
        (a, b), v = step.inputs, step.v
        if max(a.ndim, b.ndim) < 3:
            return step.alone(v[None]) if (a.ndim, b.ndim) == (1, 2) else (step.each,)
        n, m = (1 if x.ndim == 1 else x.shape[side] for x, side in ((a, -2), (b, -1)))
        turned = v[..., None] if a.ndim == 1 else v.swapaxes(-1, -2) if b.ndim > 1 else v
        shapes: list[Shape] = [(-1,), (-1, m), (-1, n, m)]
        forms = tuple(form for seen in (turned, *map(v.reshape, shapes)) for form in step.alone(seen))
        return (*forms, (None, step.inner(v))) if a.ndim == 2 and step.release < (1, 10) else forms


@dataclass(frozen=True)
class Bmm(MatMul):
    """``torch.bmm(a, b)``: (N, n, k) and (N, k, m) to (N, n, m); the gradients of `MatMul`."""

    _text = "torch.bmm({0}, {1})"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, n, k); sides of 0 are allowed."""
        return len(shape) == 3

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On as many matrices."""
        return cls(), (Operand(shape), Operand((shape[0], shape[2], draw(st.integers(1, 3)))))

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """One Node."""
        return (step.each,)


@dataclass(frozen=True)
class Einsum(Filled):
    """``torch.einsum(equation, a, b)``, no letter twice in one operand and no ellipsis.

    ``da`` is the sum of ``v b̄`` over the letters that ``a`` does not have, repeated along those that ``a`` alone has;
    ``db`` likewise. Empty tensors are left out: torch up to 1.12 gives results without a graph for them. Source: the
    documentation of ``torch.einsum``; the VJP is the product rule.
    """

    equation: str

    complex_since = "1.9"
    _text = "torch.einsum({equation!r}, {0}, {1})"

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Op, tuple[Operand, ...]]:
        """On a second tensor that shares some letters with the first and has one of its own."""
        sides = dict(zip("abcde", shape))
        first = "".join(sides)
        shared = draw(st.lists(st.sampled_from(first), unique=True, max_size=MOST - 1))
        sides["z"] = draw(st.integers(1, 3))
        second = "".join(draw(st.permutations([*shared, "z"])))
        summed = draw(st.integers(max(0, len(sides) - MOST), len(sides)))
        result = "".join(draw(st.permutations(list(sides)))[summed:])
        operands = Operand(shape), Operand(tuple(sides[letter] for letter in second))
        return cls(f"{first},{second}->{result}"), operands

    def value(self, a: Array, b: Array) -> Array:
        """The sum of products."""
        return np.einsum(self.equation, a, b)

    def pull(self, v: Array, a: Array, b: Array) -> Gradients:
        """The sums of products with ``v``."""
        operands, result = self.equation.split("->")
        first, second = operands.split(",")
        return _spread(result, v, second, b, first, a), _spread(result, v, first, a, second, b)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """Not known: products and sums in an order that releases differ in."""
        return ()


def _spread(result: str, v: Array, others: str, other: Array, letters: str, x: Array) -> Array:
    """The gradient of ``x``, which has ``letters``: ``v`` times the other operand, repeated where neither has one."""
    known = "".join(letter for letter in letters if letter in result or letter in others)
    gradient = np.einsum(f"{result},{others}->{known}", v, other.conj())
    missing = tuple(i for i, letter in enumerate(letters) if letter not in known)
    return like(np.broadcast_to(np.expand_dims(gradient, missing), x.shape), x)
