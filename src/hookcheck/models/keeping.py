"""A model as it was: what a module holds, what its tensors hold, and the random state of Python, NumPy and torch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from hookcheck.models.tables import TENSOR_TABLES
from hookcheck.probe.state import preserved

HELD = (dict, list, set)


class Snapshot:
    """All that `restore` puts back: attributes of every module, hook tables, parameters, buffers and each ``.grad``."""

    def __init__(self, model: torch.nn.Module) -> None:
        """Copies parameters and buffers; containers of a module are copied one level deep."""
        self._modules = [(module, dict(vars(module)), _contents(vars(module))) for module in model.modules()]
        tensors = {id(t): t for t in (*model.parameters(), *model.buffers())}
        self._tensors = [
            (tensor, tensor._version, tensor.detach().clone(), tensor.requires_grad, tensor.grad, _tables(tensor))
            for tensor in tensors.values()
        ]
        self._buffers = {id(buffer) for buffer in model.buffers()}

    def restore(self) -> None:
        """Puts everything back as it was."""
        for module, attributes, contents in self._modules:
            held = vars(module)
            for name in held.keys() - attributes.keys():
                del held[name]
            held.update(attributes)
            for name, content in contents.items():
                _put_back(held[name], content)
        with torch.no_grad():
            for tensor, version, numbers, asks, grad, tables in self._tensors:
                # Kernels write running statistics past the version.
                if tensor._version != version or id(tensor) in self._buffers:
                    if tensor.shape != numbers.shape:  # as observers of quantisation grow theirs
                        tensor.resize_(numbers.shape)
                    tensor.copy_(numbers)
                if tensor.requires_grad is not asks and tensor.is_leaf:
                    tensor.requires_grad_(asks)
                tensor.grad = grad
                for name, table in tables.items():
                    now = getattr(tensor, name, None)
                    for key in [key for key in now or () if key not in table]:
                        del now[key]  # type: ignore[union-attr]


@contextmanager
def as_before(snapshot: Snapshot) -> Iterator[None]:
    """On leaving, even by an exception, the model is as in ``snapshot`` and the process as on entering."""
    state, numpy_state = random.getstate(), np.random.get_state()
    try:
        with preserved():
            yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)
        snapshot.restore()


def seeded(seed: int) -> None:
    """The random state of Python, NumPy and torch's devices begins anew."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


def _contents(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value.copy() for name, value in attributes.items() if isinstance(value, HELD)}


def _put_back(container: Any, content: Any) -> None:
    if isinstance(container, list):
        container[:] = content
    elif _members(container) != _members(content):
        container.clear()
        container.update(content)


def _members(container: Any) -> list[Any]:
    """By identity and in order, since tensors that are compared give tensors."""
    items = container.items() if isinstance(container, dict) else ((item, item) for item in container)
    return [(id(key), id(value)) for key, value in items]


def _tables(tensor: torch.Tensor) -> dict[str, list[Any]]:
    return {name: [*(getattr(tensor, name, None) or ())] for name in TENSOR_TABLES}
