"""How tests run a topology on torch without hooks: as `build` does it, and as the printed script does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.graph import Tensor
from hookcheck.probe.copying import array_of
from hookcheck.topology.build import build
from hookcheck.topology.model import Topology
from hookcheck.topology.source import source
from hookcheck.topology.values import values

Names = dict[str, Any]


def built(topology: Topology) -> Names:
    """The names that `build`'s run leaves, ``net`` and inputs included."""
    return build(topology, values(topology)).run()


def scripted(topology: Topology) -> Names:
    """The names that the printed script leaves, run on its own."""
    names: Names = {"__name__": "__main__"}
    exec(compile(source(topology).script(), "<script>", "exec"), names)
    return names


def values_of_main(topology: Topology, names: Names) -> Names:
    """What main has named: inputs, outputs, losses and leaks."""
    hidden = {"torch", "nn", "net"}
    return {k: v for k, v in names.items() if k not in hidden and k[:2] != "__" and not callable(v)}


def gradients(topology: Topology, names: Names) -> dict[str, Any]:
    """``.grad`` of every parameter and input."""
    leaves = [*names["net"].named_parameters(), *((i.name, names[i.name]) for i in topology.inputs)]
    return {name: leaf.grad for name, leaf in leaves}


def tensors(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """What lies in ``value``, containers opened, each with its place; the oracle's dataclasses are namespaces."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from tensors(item, f"{name}[{key!r}]")
    elif isinstance(value, SimpleNamespace) or is_dataclass(value):
        yield name, tuple(vars(value))
        for key, item in vars(value).items():
            yield from tensors(item, f"{name}.{key}")
    elif isinstance(value, (tuple, list)):
        yield name, getattr(value, "_fields", type(value))
        for key, item in enumerate(value):
            yield from tensors(item, f"{name}[{key}]")
    else:
        yield name, value


def same(a: Any, b: Any) -> bool:
    """Equal bit by bit, in dtype, shape and requires_grad; what is no tensor equal in type and value."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        left, right = array(a), array(b)
        return (
            (a.requires_grad, a.dtype) == (b.requires_grad, b.dtype)
            and left.shape == right.shape
            and left.tobytes() == right.tobytes()
        )
    return type(a) is type(b) and bool(a == b)


def assert_same(a: Names, b: Names) -> None:
    left, right = dict(tensors(a)), dict(tensors(b))
    assert left.keys() == right.keys()
    assert [name for name in left if not same(left[name], right[name])] == []


def agrees(observed: Any, expected: Any, oracle: Expected) -> bool:
    """Whether torch's value is the oracle's, to rounding, of its dtype, and requires grad where the oracle's does."""
    if isinstance(expected, Tensor):
        return (
            isinstance(observed, torch.Tensor)
            and (observed.requires_grad, str(observed.dtype)) == (expected.requires_grad, f"torch.{expected.dtype}")
            and oracle.close(_number(array(observed)), _number(expected.array), "cpu")
        )
    return type(observed) is type(expected) and bool(observed == expected)


def _number(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A mask as numbers, which can be subtracted; all else as it is."""
    return numbers.astype(int) if numbers.dtype == bool else numbers


def array(tensor: Any) -> np.ndarray[Any, Any]:
    """The numbers of a tensor of any layout; NumPy has no bfloat16, whose numbers are all in float32."""
    return array_of(tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor)
