"""Which numbers do a topology's tensors hold? The same ones for torch and oracle, on every version and machine.

Each tensor has a stream of its own, ``numpy.random.RandomState`` seeded with the topology's seed and the tensor's name:
that generator's stream is frozen for good, and shrinking one part of a topology leaves the numbers of the rest alone.
Every number is a multiple of 1/8 between -3 and 3 and never 0: exact in every floating type down to bfloat16, off the
kinks of the activations, and short to print.
"""

from __future__ import annotations

import zlib

import numpy as np

from hookcheck.topology.model import Array, Layer, Shape, Topology, walk

_STREAM = np.random.RandomState()  # seeded anew for each tensor: making one takes ten times as long as seeding it


def draw(seed: int, name: str, shape: Shape) -> Array:
    """The float64 values of the tensor ``name`` under ``seed``, of the given shape."""
    _STREAM.seed([seed, zlib.crc32(name.encode())])
    numbers = _STREAM.randint(1, 25, size=shape) * (2 * _STREAM.randint(0, 2, size=shape) - 1)
    return np.asarray(numbers / 8.0)


def parameter_shapes(topology: Topology) -> dict[str, Shape]:
    """Dotted name and shape of every parameter below the root, in torch's order; tied ones are left out."""
    replaced = tuple(target for target, _ in topology.ties)
    return {
        name: shape
        for path, module in walk(topology.module)
        if isinstance(module, Layer)
        for key, shape in module.parameters().items()
        for name in [f"{path}.{key}" if path else key]
        if not any(name == target or name.startswith(f"{target}.") for target in replaced)
    }


def values(topology: Topology) -> dict[str, Array]:
    """The values of every parameter (by dotted name) and of every input (by name) of a topology."""
    shapes = {**parameter_shapes(topology), **{i.name: i.shape for i in topology.inputs}}
    return {name: draw(topology.seed, name, shape) for name, shape in shapes.items()}
