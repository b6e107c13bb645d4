"""Layers and operations with drawn settings and numbers, to prove their formulas on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from hookcheck.topology.catalogue import layer_classes, op_classes
from hookcheck.topology.families.drawing import SEEDS
from hookcheck.topology.families.fitting import shapes_for
from hookcheck.topology.layers.cells import GRUCell, LSTMCell, RNNCell
from hookcheck.topology.layers.recurrent import GRU, LSTM, RNN
from hookcheck.topology.primitive import Array, Assembled, Layer, Primitive
from hookcheck.topology.values import draw

RECURRENT = (RNN, LSTM, GRU, RNNCell, LSTMCell, GRUCell)


@dataclass(frozen=True, eq=False)
class Step:
    """A primitive with arrays for its inputs and parameters (buffers among them) and a cotangent for each output."""

    primitive: Primitive
    inputs: tuple[Array, ...]
    parameters: dict[str, Array]
    cotangents: tuple[Array, ...]


def existing() -> list[type[Primitive]]:
    """Every layer and operation that has a formula of its own."""
    kinds = [*layer_classes().values(), *op_classes().values()]
    return [kind for kind in kinds if not issubclass(kind, Assembled)]


def constructed(layer: Layer) -> torch.nn.Module:
    """The module that the layer's own source makes."""
    names: dict[str, Any] = {"torch": torch, "nn": torch.nn}
    for text in layer.definitions():
        exec(text, names)
    module: torch.nn.Module = eval(layer.source(), names)
    return module


def number(seed: int, name: str, shape: tuple[int, ...], kind: str) -> Array:
    """A real, complex or ``small`` complex tensor."""
    real = draw(seed, name, shape)
    if kind == "real":
        return real
    return np.asarray((real + 1j * draw(seed, f"{name}, imaginary", shape)) / (8 if kind == "small" else 1))


@st.composite
def steps(draw_: st.DrawFn, kind: type[Primitive], numbers: str = "real") -> Step:
    """A primitive of that kind with its arrays; ``numbers`` is ``real`` or ``complex``."""
    if numbers == "complex" and issubclass(kind, RECURRENT):
        numbers = "small"  # away from the poles of tanh and sigmoid, which one after the other magnify any rounding
    primitive, operands = kind.fitting(draw_, draw_(shapes_for(kind, longest=3)))
    seed = draw_(SEEDS)
    inputs = tuple(
        number(seed, f"input {i}", operand.shape, numbers)
        if operand.domain == "real"
        else draw(seed, f"input {i}", operand.shape, operand.domain, operand.below)
        for i, operand in enumerate(operands)
    )
    parameters = {name: number(seed, name, shape, numbers) for name, shape in primitive.parameters().items()}
    if isinstance(primitive, Layer):
        parameters.update(primitive.buffers())
    return with_cotangents(primitive, inputs, parameters, seed, numbers)


def with_cotangents(
    primitive: Primitive, inputs: tuple[Array, ...], parameters: dict[str, Array], seed: int, numbers: str = "real"
) -> Step:
    """The step with a drawn cotangent for each of its outputs."""
    outputs = primitive.forward(inputs, parameters)
    cotangents = tuple(
        number(seed, f"v {j}", y.shape, "complex" if np.iscomplexobj(y) else "real") for j, y in enumerate(outputs)
    )
    return Step(primitive, inputs, parameters, cotangents)
