"""What is kept of a value that torch hands out? A copy of it as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch

from hookcheck.probe.observation import Array, Copy, Standing


def copied(value: Any, tensor: Callable[[torch.Tensor], Array] | None = None) -> Copy:
    """A copy that what torch does to the value later does not change; see `hookcheck.probe.observation.Copy`.

    ``tensor`` is what makes an array of a tensor, `array_of` without it.
    """
    if value is None:
        return None
    if isinstance(value, torch.Tensor):
        return (tensor or array_of)(value)
    if isinstance(value, dict):
        return {str(key): copied(item, tensor) for key, item in value.items()}
    if type(value) in (tuple, list):
        items: Copy = type(value)(copied(item, tensor) for item in value)
        return items
    if is_container(value):
        return {"type": type(value).__name__, **{name: copied(item, tensor) for name, item in fields_of(value)}}
    return repr(value)


def is_container(value: Any) -> bool:
    """Whether it is a tuple, list, dict, namedtuple or an instance of a dataclass."""
    return isinstance(value, (tuple, list, dict)) or is_dataclass(type(value))


def fields_of(value: Any) -> list[tuple[str, Any]]:
    """What a container holds, by key, by field, or by place."""
    if isinstance(value, dict):
        return list(value.items())
    if is_dataclass(value):
        return [(f.name, getattr(value, f.name)) for f in fields(value)]
    return [(str(i), item) for i, item in enumerate(value)]


_LAZY = hasattr(torch.Tensor, "resolve_neg")
"""Whether this torch has tensors that are conjugated or negated only when their numbers are asked for."""


def array_of(tensor: torch.Tensor) -> Array:
    """The tensor's numbers in its own dtype, in memory of their own.

    NumPy has no bfloat16: the 16 bits are kept as they are.
    """
    return view_of(tensor).copy()


def view_of(tensor: torch.Tensor) -> Array:
    """The tensor's numbers as `array_of` has them, in the memory of the tensor itself where that can be."""
    plain = tensor.detach()  # the array must not keep the tensor itself alive
    if plain.is_sparse:
        plain = plain.to_dense()
    if plain.device.type != "cpu":
        plain = plain.cpu()
    if plain.dtype == torch.bfloat16:
        return plain.contiguous().view(torch.int16).numpy().view(np.uint16)
    if _LAZY:
        plain = plain.resolve_conj().resolve_neg()
    array: Array = plain.numpy()
    return array


def asks(values: Iterable[Any]) -> bool:
    """Whether any tensor among ``values``, or in a tuple or dict of them, requires grad."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.requires_grad:
                return True
        elif isinstance(value, (tuple, dict)) and asks(value.values() if isinstance(value, dict) else value):
            return True
    return False


_MODE = hasattr(torch.Tensor, "is_inference")
"""Whether this torch has an inference mode, whose tensors have no version."""


def standings(tensors: Mapping[str, torch.Tensor]) -> dict[str, Standing]:
    """What each tensor is beside its numbers; it may be the same object as one before it."""
    first: dict[int, str] = {}
    return {
        name: Standing(
            first.setdefault(id(tensor), name),
            tensor._is_view(),
            tensor.is_leaf,
            None if _MODE and tensor.is_inference() else tensor._version,
            tensor.stride(),
        )
        for name, tensor in tensors.items()
    }
