"""Faults in what backward hooks keep alive."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from ..engine import Fault, engine, replaced


def weakly(original: Any) -> Any:
    """The helper of full hooks holds its module weakly."""

    def init(self: Any, module: Any, *hooks: Any) -> None:
        original(self, module, *hooks)
        self.module = weakref.proxy(module)

    return init


def holding(original: Any) -> Any:
    """A multi-grad hook holds its tensors."""

    def register(tensors: Any, hook: Any) -> Any:
        return original(tensors, lambda gradients: (tensors, hook(gradients))[1])

    return register


FAULTS = (
    Fault("full hooks: they hold their module weakly", lambda: engine("__init__", weakly), ("BL-08",)),
    Fault(
        "multi-grad hooks: they hold their tensors",
        lambda: replaced(torch.autograd.graph, "register_multi_grad_hook", holding),
        ("BL-07",),
        since="2.0",
    ),
)
