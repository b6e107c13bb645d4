"""Layers that move values about without computing: the gradient takes the same way back."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis.strategies import DrawFn

from hookcheck.topology.model import Array, Layer, Operand, Shape


@dataclass(frozen=True)
class Flatten(Layer):
    """``nn.Flatten()``: (N, ...) to (N, product of the rest); the VJP restores the shape."""

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, ...), at least two dimensions."""
        return len(shape) > 1 and all(shape)

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """The layer, on a real tensor (N, ...)."""
        return cls(), (Operand(shape),)

    def source(self) -> str:
        """The constructor call."""
        return "nn.Flatten()"

    def forward(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> tuple[Array, ...]:
        """``x`` (N, ...) to (N, product of the rest)."""
        (x,) = inputs
        return (x.reshape(len(x), -1),)

    def vjp(
        self, inputs: tuple[Array, ...], parameters: dict[str, Array], cotangents: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], dict[str, Array]]:
        """``v`` in ``x``'s shape."""
        return (cotangents[0].reshape(inputs[0].shape),), {}
