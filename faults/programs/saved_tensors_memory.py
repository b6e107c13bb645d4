"""Faults in what is kept of saved tensors."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from ..engine import Fault, replaced
from .saved_tensors_hooks import pairs, unset


def on_cpu(pack: Any, unpack: Any) -> AbstractContextManager[None]:
    """Has ``save_on_cpu`` apply other hooks."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    return replaced(
        torch.autograd.graph.save_on_cpu,
        "__init__",
        lambda original: lambda self, *args, **kwargs: hooks.__init__(self, pack, unpack),
    )


def _contiguous(value: Any) -> Any:
    """The same tensor in one piece, where it is one that has strides."""
    return value.contiguous() if isinstance(value, torch.Tensor) and not value.is_sparse else value


FAULTS = (
    Fault(
        "saved tensors: the tensor is kept beside what it was packed into",
        lambda: pairs(lambda hook: lambda t: (t, hook(t)), lambda hook: lambda packed: hook(packed[1])),
        ("ST-02", "ST-17"),
    ),
    Fault("saved tensors: contexts set no hooks, so that nothing is kept live", unset, ("ST-15", "ST-27", "ST-28")),
    Fault(
        "saved tensors: pack gets a plain Tensor",
        lambda: pairs(lambda hook: lambda t: hook(t.as_subclass(torch.Tensor))),
        ("ST-33",),
    ),
    Fault(
        "saved tensors: save_on_cpu copies",
        lambda: on_cpu(lambda t: t.clone(), lambda packed: packed),
        ("ST-22", "ST-31"),
    ),
    Fault(
        "saved tensors: save_on_cpu leaves what it saves where it is",
        lambda: on_cpu(lambda t: t.detach(), lambda packed: packed),
        ("ST-29",),
    ),
    Fault(
        "saved tensors: save_on_cpu gives back what has not arrived",
        lambda: on_cpu(lambda t: (t.device, t.cpu()), lambda packed: torch.zeros_like(packed[1], device=packed[0])),
        ("ST-22", "ST-23"),
    ),
    Fault(
        "saved tensors: save_on_cpu gives back contiguous tensors",
        lambda: on_cpu(lambda t: t, _contiguous),
        ("ST-30", "ST-31"),
    ),
    Fault(
        "saved tensors: pinned copies have the strides of what was saved",
        lambda: on_cpu(lambda t: t, lambda packed: packed),
        ("ST-32",),
    ),
    Fault(
        "saved tensors: save_on_cpu stores everything in single precision",
        lambda: on_cpu(lambda t: t if t.is_complex() else t.float(), lambda packed: packed),
        ("ST-30",),
    ),
    Fault(
        "saved tensors: what is unpacked is made contiguous",
        lambda: pairs(unpack=lambda hook: lambda packed: _contiguous(hook(packed))),
        ("ST-30",),
    ),
)
