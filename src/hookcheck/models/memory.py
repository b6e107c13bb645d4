"""How much of what hooks are given is still in memory when the step is over?"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.multiprocessing import reductions

from hookcheck.models.step import tensors_in

_weak: Any = reductions.StorageWeakRef  # has no types


class Given:
    """Weak references to the tensors that a hook was given, and to their memory, which others may share."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._tensors: list[weakref.ref[torch.Tensor]] = []
        self._memory: dict[int, tuple[Any, int]] = {}

    def note(self, arguments: Any) -> None:
        """Remembers the tensors among what a hook is called with."""
        for _, tensor in tensors_in(arguments):
            held = _storage(tensor)
            if held is not None:
                self._tensors.append(weakref.ref(tensor))
                reference = _weak(held)
                self._memory.setdefault(reference.cdata, (reference, _size(held)))

    def left(self, excluded: Iterable[torch.Tensor]) -> tuple[int, bool]:
        """The bytes still in memory, without those of ``excluded`` tensors, and whether a graph is there as well."""
        others = {_weak(held).cdata for tensor in excluded if (held := _storage(tensor)) is not None}
        left = sum(size for key, (memory, size) in self._memory.items() if key not in others and not memory.expired())
        return left, left > 0 and any(
            (tensor := reference()) is not None and tensor.grad_fn is not None for reference in self._tensors
        )


def _storage(tensor: torch.Tensor) -> Any:
    """The memory of a tensor; None for one that holds no numbers itself, such as a sparse one."""
    try:
        storage: Any = tensor.untyped_storage if hasattr(tensor, "untyped_storage") else tensor.storage
        return storage()
    except (NotImplementedError, RuntimeError):
        return None


def _size(storage: Any) -> int:
    return storage.nbytes() if hasattr(storage, "nbytes") else storage.size() * storage.element_size()  # type: ignore[no-any-return]
