"""Bilinear: y = x₁ᵀ A x₂ + b over the last axes of two inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.primitive import Array, Gradients, Layer, Operand, Shape, SingleStep


@dataclass(frozen=True)
class Bilinear(SingleStep):
    """``nn.Bilinear``: ``x₁`` (..., in1_features) and ``x₂`` (..., in2_features) to ``y`` (..., out_features).

    ``y[o] = Σ_{i, j} x₁[i] A[o, i, j] x₂[j] + b[o]``. With cotangent ``v``, a product rule for each factor:
    ``dx₁[i] = Σ v[o] A[o, i, j] x₂[j]``, ``dx₂[j] = Σ v[o] x₁[i] A[o, i, j]``, ``dA[o, i, j] = Σ v[o] x₁[i] x₂[j]`` and
    ``db = Σ v``, the last two over all leading axes. Source: the documentation of ``torch.nn.Bilinear``.
    """

    smooth = True
    keywords = ("input1", "input2")
    in1_features: int
    in2_features: int
    out_features: int
    bias: bool = True

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, ..., in1_features)."""
        return len(shape) > 1 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """From the last axis and from a second input of one to four features, to one to four."""
        layer = cls(shape[-1], draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.booleans()))
        return layer, (Operand(shape), Operand((*shape[:-1], layer.in2_features)))

    def parameters(self) -> dict[str, Shape]:
        """``weight`` (out_features, in1_features, in2_features) and, if there is one, ``bias`` (out_features,)."""
        weight: dict[str, Shape] = {"weight": (self.out_features, self.in1_features, self.in2_features)}
        return {**weight, "bias": (self.out_features,)} if self.bias else weight

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)

    def value(self, x1: Array, x2: Array, weight: Array, bias: Array | float = 0.0) -> Array:
        """``x₁`` (..., in1_features) and ``x₂`` (..., in2_features) to ``y`` (..., out_features)."""
        return np.einsum("...i,oij,...j->...o", x1, weight, x2) + bias

    def pull(self, v: Array, x1: Array, x2: Array, weight: Array, bias: Array | float = 0.0) -> Gradients:
        """``dx₁`` and ``dx₂`` of the inputs' shapes; ``dA`` and ``db`` of the parameters' shapes."""
        rows = v.reshape(-1, self.out_features)
        flat = x1.reshape(-1, self.in1_features), x2.reshape(-1, self.in2_features)
        gradients: dict[str, Array] = {"weight": np.einsum("no,ni,nj->oij", rows, *flat)}
        if self.bias:
            gradients["bias"] = rows.sum(0)
        dx1, dx2 = np.einsum("...o,oij,...j->...i", v, weight, x2), np.einsum("...o,oij,...i->...j", v, weight, x1)
        return dx1, dx2, gradients

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """The addition of the bias, or a view of the product of rows."""
        if self.bias:
            return ((step.inner(step.v, 0, 1, "weight"), step.of("bias")),)
        return step.view(step.v.reshape(-1, self.out_features))
