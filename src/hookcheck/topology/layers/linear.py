"""Linear: y = x Wᵀ + b over the last axis."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.primitive import Array, Gradients, Layer, Operand, Shape, SingleStep


@dataclass(frozen=True)
class Linear(SingleStep):
    """``nn.Linear``: ``x`` (..., in_features) to ``y`` (..., out_features), ``y = x Wᵀ + b``.

    With cotangent ``v``: ``dx = v W̄``, ``dW = Σ vᵀ x̄`` and ``db = Σ v``, the sums over all leading axes, the bars
    complex conjugates (notes on autograd, 'Autograd for Complex Numbers').
    Source: the documentation of ``torch.nn.Linear``; the VJP is the product rule.
    """

    smooth = True
    overwritable = True
    rounded_once = True
    complex_since = "1.9"  # every release from this one on has complex matrix products with conjugated gradients

    in_features: int
    out_features: int
    bias: bool = True

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(..., in_features); leading axes may be empty."""
        return len(shape) > 0 and shape[-1] > 0

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """From the last axis to one to four features."""
        return cls(shape[-1], draw(st.integers(1, 4)), draw(st.booleans())), (Operand(shape),)

    def parameters(self) -> dict[str, Shape]:
        """``weight`` (out_features, in_features) and, if there is one, ``bias`` (out_features,)."""
        weight: dict[str, Shape] = {"weight": (self.out_features, self.in_features)}
        return {**weight, "bias": (self.out_features,)} if self.bias else weight

    def source(self) -> str:
        """The constructor call."""
        return f"nn.Linear({self.in_features}, {self.out_features}{'' if self.bias else ', bias=False'})"

    def value(self, x: Array, weight: Array, bias: Array | float = 0.0) -> Array:
        """``x`` (..., in_features) to ``y`` (..., out_features)."""
        return x @ weight.T + bias

    def pull(self, v: Array, x: Array, weight: Array, bias: Array | float = 0.0) -> Gradients:
        """``dx`` of ``x``'s shape; ``dW`` and ``db`` of the parameters' shapes."""
        rows = v.reshape(-1, self.out_features)
        gradients = {"weight": rows.T @ x.reshape(-1, self.in_features).conj()}
        if self.bias:
            gradients["bias"] = rows.sum(0)
        return v @ weight.conj(), gradients

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """By the number of dimensions, as ``at::linear`` has it (Linear.cpp).

        Of two, addmm (bias, x, Wᵀ), or without a bias mm (x, Wᵀ). Else the product of rows in ``y``'s shape, or the
        addition of the bias to that: where ``x`` is contiguous bias and all are one product, since 1.12 of three
        dimensions (pytorch#72728), and since 2.1 of any number of them (pytorch#106911). Up to 2.14 that is a view of
        the rows. Without a bias `MatMul` decides.
        """
        (x,) = step.inputs
        rows = step.v.reshape(-1, self.out_features)
        added: Form = (step.inner(step.v, 0, "weight"), step.of("bias")) if self.bias else ()
        if x.ndim == 2:
            return ((*([step.of("bias")] if self.bias else []), step.of(0), step.turned("weight")),)
        if not self.bias:
            batch = step.v.reshape(prod(x.shape[:-2]), x.shape[-2], self.out_features) if x.ndim > 2 else rows
            return (*step.alone(rows), *step.alone(batch))
        flattened = step.release >= ((1, 12) if x.ndim == 3 else (2, 1))
        if not flattened:
            return (added,)
        product = step.view(rows) if step.release < (2, 15) else step.alone(rows)
        return product if step.contiguous else (*product, added)
