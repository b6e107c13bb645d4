"""Which activations are called as functions between modules? Their formulas are those of the layers of ``torch.nn``."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.layers.adjustable import GELU
from hookcheck.topology.layers.softmax import Softmax
from hookcheck.topology.ops.rule import Rule, one
from hookcheck.topology.primitive import Array, Shape, SingleStep


class _Through(Rule):
    """A function that computes what a layer without parameters does."""

    @property
    @abstractmethod
    def _layer(self) -> SingleStep:
        """The layer."""

    def value(self, x: Array) -> Array:
        """That of the layer."""
        return self._layer.value(x)

    def pull(self, v: Array, x: Array) -> Array:
        """That of the layer."""
        return self._layer.pull(v, x)


@dataclass(frozen=True)
class FunctionalReLU(_Through):
    """``torch.relu(x)``: the formulas of ``nn.ReLU``."""

    _layer = ReLU()
    exact = True
    _text = "torch.relu({0})"


@dataclass(frozen=True)
class FunctionalSigmoid(_Through):
    """``torch.sigmoid(x)``: the formulas of ``nn.Sigmoid``."""

    curved = True
    _layer = Sigmoid()
    complex_since = _layer.complex_since
    _text = "torch.sigmoid({0})"


@dataclass(frozen=True)
class FunctionalTanh(_Through):
    """``torch.tanh(x)``: the formulas of ``nn.Tanh``."""

    curved = True
    _layer = Tanh()
    complex_since = _layer.complex_since
    _text = "torch.tanh({0})"


@dataclass(frozen=True)
class FunctionalGELU(_Through):
    """``nn.functional.gelu(x)``: the formulas of ``nn.GELU``."""

    _layer = GELU()
    _text = "nn.functional.gelu({0})"


@dataclass(frozen=True)
class FunctionalSoftmax(_Through):
    """``torch.softmax(x, dim)``: the formulas of ``nn.Softmax``."""

    dim: int

    _text = "torch.softmax({0}, {dim})"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with a dimension and an element."""
        return len(shape) > 0 and all(shape)

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
        return (one(draw, len(shape)),)

    @property
    def _layer(self) -> SingleStep:
        return Softmax(self.dim)
