"""Faults in what Functions of one's own save, write to and are told."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import FunctionCtx

from ..engine import Fault, replaced
from .state_dict_hooks import Patch


def _holding(original: Any) -> Any:
    """Saving for backward keeps the context for good."""
    contexts: list[Any] = []

    def save(self: Any, *tensors: Any) -> None:
        contexts.append(self)
        original(self, *tensors)

    return save


def _copies() -> Patch:
    """What the hooks give for a saved tensor is copied."""

    def make(original: Any) -> Any:
        def init(self: Any, pack: Any, unpack: Any) -> None:
            original(self, pack, lambda packed: unpack(packed).clone())

        return init

    return replaced(torch.autograd.graph.saved_tensors_hooks, "__init__", make)


def _unseen() -> Patch:
    """A product in place is written past autograd."""

    def make(original: Any) -> Any:
        def product(self: Any, other: Any) -> Any:
            original(self.data, other)
            return self

        return product

    return replaced(torch.Tensor, "mul_", make)


def _untold() -> Patch:
    """Backward runs as it comes."""
    return replaced(torch.amp, "custom_bwd", lambda original: lambda backward, *, device_type: backward)


FAULTS = (
    Fault(
        "saving for backward keeps the context",
        lambda: replaced(FunctionCtx, "save_for_backward", _holding),
        ("LT-14",),
        kinds=(),
        since="1.13",
    ),
    Fault("what is unpacked is copied", _copies, ("ST-34",), kinds=(), since="1.10"),
    Fault("a product in place goes past autograd", _unseen, ("IP-11",), kinds=()),
    Fault("custom_bwd does nothing", _untold, ("AU-12",), kinds=(), since="2.4"),
)
