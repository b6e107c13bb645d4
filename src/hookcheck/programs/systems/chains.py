"""What comes out of a chain of layers, and which gradients reach its parameters? By each layer's formulas, in NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from hookcheck.topology.layers.activation import ReLU, Sigmoid
from hookcheck.topology.layers.average_pool import AdaptiveAvgPool2d
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.max_pool import MaxPool2d
from hookcheck.topology.layers.structure import Flatten
from hookcheck.topology.primitive import Array, Primitive

Chain = Sequence[tuple[str, Primitive]]
"""Steps one after another, each with the name that its parameters go by; a name that comes twice shares them."""


@dataclass(frozen=True, eq=False)
class Masked(Primitive):
    """``y = m ⊙ x`` with a mask ``m`` that broadcasts to ``x``'s shape; the VJP is ``dx = m ⊙ v``."""

    mask: Array

    def value(self, x: Array) -> Array:
        """``x`` of any shape to ``y`` of the same."""
        y: Array = self.mask * x
        return y

    def pull(self, v: Array, x: Array) -> Array:
        """``dx`` of ``x``'s shape."""
        dx: Array = self.mask * v
        return dx


def outputs(chain: Chain, parameters: Mapping[str, Any], x: Array) -> list[Array]:
    """The output of each step on ``x``; ``parameters`` holds ``<name>.<parameter>``."""
    results = []
    for name, step in chain:
        (x,) = step.forward((x,), _of(name, step, parameters))
        results.append(x)
    return results


def gradients(chain: Chain, parameters: Mapping[str, Any], x: Array, cotangent: Array) -> dict[str, Array]:
    """The gradients of all ``parameters`` for a cotangent of the last output, by name, each summed over its uses."""
    inputs = [x, *outputs(chain, parameters, x)]
    total = {name: np.zeros(np.shape(number)) for name, number in parameters.items()}
    for (name, step), given in reversed(list(zip(chain, inputs))):
        (cotangent,), of_parameters = step.vjp((given,), _of(name, step, parameters), (cotangent,))
        for key, gradient in of_parameters.items():
            total[f"{name}.{key}"] += gradient
    return total


def _of(name: str, step: Primitive, parameters: Mapping[str, Any]) -> dict[str, Array]:
    """The step's own parameters, by the names that its formulas call them."""
    return {key: np.asarray(parameters[f"{name}.{key}"], dtype=float) for key in step.parameters()}


PERCEPTRON: Chain = (("fc1", Linear(3, 4)), ("sigmoid", Sigmoid()), ("fc2", Linear(4, 3)))
"""Two layers: x (N, 3) to (N, 3)."""

TIED: Chain = (("fc", Linear(3, 3)), ("sigmoid", Sigmoid()), ("fc", Linear(3, 3)))
"""What ``gradient_clipper.Tied`` computes: x (N, 3) to (N, 3)."""

CONVNET: Chain = (
    ("features.0", Conv2d(3, 4, (3, 3), padding=(1, 1))),
    ("features.1", ReLU()),
    ("features.2", MaxPool2d(2)),
    ("features.3", Conv2d(4, 6, (3, 3))),
    ("features.4", ReLU()),
    ("pool", AdaptiveAvgPool2d(1)),
    ("flatten", Flatten()),
    ("classifier", Linear(6, 5)),
)
"""What ``feature_maps.ConvNet`` computes: x (N, 3, 8, 8) to (N, 5)."""


def vgg16(width: int, masks: Iterable[Array] = ()) -> Chain:
    """What ``hooked_dropout.VGG16`` computes in evaluation mode: x (N, 3, 32, 32) to (N, 10).

    Configuration D of Simonyan and Zisserman, Very Deep Convolutional Networks (2015), with ``width`` channels where it
    has 64. Behind the n-th convolution stands the n-th of ``masks``, if there are any.
    """
    steps: list[tuple[str, Primitive]] = []
    index, channels, left = 0, 3, iter(masks)
    for layers, wide in ((2, width), (2, 2 * width), (3, 4 * width), (3, 8 * width), (3, 8 * width)):
        for _ in range(layers):
            steps.append((f"features.{index}", Conv2d(channels, wide, (3, 3), padding=(1, 1))))
            steps.extend(("dropped", Masked(mask)) for mask in islice(left, 1))
            steps.append((f"features.{index + 1}", ReLU()))
            index, channels = index + 2, wide
        steps.append((f"features.{index}", MaxPool2d(2)))
        index += 1
    first, second, third = Linear(channels, channels), Linear(channels, channels), Linear(channels, 10)
    steps += [("flatten", Flatten()), ("classifier.0", first), ("classifier.1", ReLU())]
    return [*steps, ("classifier.3", second), ("classifier.4", ReLU()), ("classifier.6", third)]
