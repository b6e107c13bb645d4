"""Which numbers do a topology's tensors hold? The same ones for torch and oracle, on every version and machine.

Each tensor has a stream of its own, ``numpy.random.RandomState`` seeded with the topology's seed and the tensor's name:
that generator's stream is frozen for good, and shrinking one part of a topology leaves the numbers of the rest alone.
Real numbers are odd multiples of 1/32 between -3 and 3: exact in every floating type down to bfloat16, off the kinks of
activations and losses (which lie at multiples of 1/16), without ties among up to 96 of them, and short to print.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from math import prod

import numpy as np

from hookcheck.topology.model import Topology, own_parameters, walk
from hookcheck.topology.primitive import Array, Operand, Shape
from hookcheck.topology.tensors import TENSORS

_STREAM = np.random.RandomState()  # seeded anew for each tensor: making one takes ten times as long as seeding it


def _odd(count: int, size: int) -> Array:
    """``size`` odd numbers below ``2 * count``, all different as long as there are enough."""
    if size <= count:
        return 2 * _STREAM.permutation(count)[:size] + 1
    return 2 * np.concatenate([_STREAM.permutation(count) for _ in range(-(-size // count))])[:size] + 1


def _real(shape: Shape, below: int) -> Array:
    return (_odd(96, _count(shape)) - 96).reshape(shape) / 32


def _positive(shape: Shape, below: int) -> Array:
    return _odd(48, _count(shape)).reshape(shape) / 32


def _unit(shape: Shape, below: int) -> Array:
    return _odd(32, _count(shape)).reshape(shape) / 64


def _sign(shape: Shape, below: int) -> Array:
    return 2.0 * _STREAM.randint(0, 2, size=shape) - 1


def _index(shape: Shape, below: int) -> Array:
    return _STREAM.randint(0, below, size=shape).astype(np.int64)


def _distinct(shape: Shape, below: int) -> Array:
    rows, columns = _count(shape[:2]), _count(shape[2:])
    drawn = [_STREAM.permutation(below)[:columns] for _ in range(rows)]
    return np.array(drawn, dtype=np.int64).reshape(shape)


def _mask(shape: Shape, below: int) -> Array:
    drawn = _STREAM.randint(0, 2, size=shape).astype(bool)
    drawn[..., :1] = False
    return drawn


def _complex(shape: Shape, below: int) -> Array:
    return np.asarray(_real(shape, below) + 1j * _real(shape, below))


def _label(shape: Shape, below: int) -> Array:
    return _STREAM.randint(1, below, size=shape).astype(np.int64)


def _offsets(shape: Shape, below: int) -> Array:
    drawn = np.sort(_STREAM.randint(0, below, size=shape).astype(np.int64))
    drawn[:1] = 0
    return drawn


def _bounds(shape: Shape, below: int) -> Array:
    drawn = _offsets(shape, below)
    drawn[-1:] = below
    return drawn


def _ended(shape: Shape, below: int) -> Array:
    drawn = _index(shape, below)
    ends = _STREAM.randint(0, shape[-1] + 1, size=(*shape[:-1], 1))
    return np.where(np.arange(shape[-1]) < ends, drawn, -1)


def _log_probability(shape: Shape, below: int) -> Array:
    x = _real(shape, below)
    return np.asarray(x - np.log(np.exp(x).sum(-1, keepdims=True)))


def _count(shape: Shape) -> int:
    return prod(shape)


DOMAINS: dict[str, Callable[[Shape, int], Array]] = {
    "real": _real,
    "positive": _positive,
    "unit": _unit,
    "sign": _sign,
    "log_probability": _log_probability,
    "complex": _complex,
    "index": _index,
    "label": _label,
    "offsets": _offsets,
    "bounds": _bounds,
    "ended": _ended,
    "distinct": _distinct,
    "mask": _mask,
}
"""What an input's numbers can be: ``real``; ``positive`` (between 0 and 3); ``unit`` (between 0 and 1); ``sign`` (-1.0
or 1.0); ``log_probability`` (along the last axis); ``complex`` (both parts real); ``index`` (integers from 0, less than
``below``); ``label`` (the same from 1); ``offsets`` (the same, first 0 and never falling);
``bounds`` (offsets, the last one ``below``); ``ended`` (indices and from any place on -1, along the last axis);
``distinct`` (indices, all
different among those that share the first two of their own); ``mask`` (bool, the first of the last axis False)."""


WHOLE = ("index", "label", "offsets", "bounds", "ended", "distinct", "mask")
"""The domains whose numbers are integers or bools, whatever the topology's dtype."""


def draw(seed: int, name: str, shape: Shape, domain: str = "real", below: int = 0) -> Array:
    """The values of the tensor ``name`` under ``seed``: float64, int64 or bool, as the domain says."""
    _STREAM.seed([seed, zlib.crc32(name.encode())])
    return np.asarray(DOMAINS[domain](shape, below))


def parameter_shapes(topology: Topology) -> dict[str, Shape]:
    """Dotted name and shape of every parameter below the root, in torch's order; tied ones are left out."""
    replaced = tuple(target for target, _ in topology.ties)
    return {
        name: shape
        for path, module in walk(topology.module)
        for key, shape in own_parameters(module).items()
        for name in [f"{path}.{key}" if path else key]
        if not any(name == target or name.startswith(f"{target}.") for target in replaced)
    }


def values(topology: Topology) -> dict[str, Array]:
    """The values of every parameter (by dotted name) and of every input (by name) of a topology.

    Floating ones are float64, or complex128 where the tensor is complex; integers and masks int64 and bool.
    """
    dtype = topology.dtype
    arrays = {
        name: _number(topology, name, Operand(shape), dtype) for name, shape in parameter_shapes(topology).items()
    }
    for i in topology.inputs:
        arrays[i.name] = _number(topology, i.name, Operand(i.shape, i.domain, i.below), i.dtype or dtype)
    for name, of_class in (*topology.classes, *((i.name, i.tensor) for i in topology.inputs if i.tensor)):
        if TENSORS[of_class].repeats:
            arrays[name] = np.repeat(arrays[name][:1], len(arrays[name]), axis=0)
    return arrays


def _number(topology: Topology, name: str, operand: Operand, dtype: str) -> Array:
    seed = topology.seed
    if topology.counting and operand.domain == "real":
        return np.arange(1.0, _count(operand.shape) + 1).reshape(operand.shape)
    real = draw(seed, name, operand.shape, operand.domain, operand.below)
    if not dtype.startswith("complex") or operand.domain in (*WHOLE, "complex"):
        return real
    return np.asarray(real + 1j * draw(seed, f"{name}, imaginary part", operand.shape, operand.domain, operand.below))
