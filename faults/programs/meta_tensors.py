"""Faults in what becomes of hooks where tensors have no numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, calling, replaced


def without_numbers(values: Any) -> bool:
    """Whether any tensor among them is on meta."""
    return any(isinstance(value, torch.Tensor) and value.is_meta for value in values)


def forward_past_hooks() -> AbstractContextManager[None]:
    """A module that is given a tensor on meta goes past its hooks."""

    def make(original: Any) -> Any:
        return lambda self, *args, **kw: (self.forward if without_numbers(args) else original.__get__(self))(
            *args, **kw
        )

    return replaced(torch.nn.Module, "_call_impl", make)


def zeros_left_out() -> AbstractContextManager[None]:
    """Backward hooks get None for gradients on meta."""
    return calling(
        lambda hook, module, gi, go: hook(module, tuple(None for _ in gi) if without_numbers(gi) else gi, go)
    )


def twice_on_leaves() -> AbstractContextManager[None]:
    """A hook on a tensor on meta is registered twice."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any) -> Any:
            if self.is_meta:
                original(self, hook)
            return original(self, hook)

        return register

    return replaced(torch.Tensor, "register_hook", make)


@contextmanager
def nothing_packed() -> Iterator[None]:
    """Tensors on meta are not packed."""

    def make(original: Any) -> Any:
        def init(self: Any, pack: Any, unpack: Any) -> None:
            original(self, lambda t: t if t.is_meta else pack(t), lambda t: t if t.is_meta else unpack(t))

        return init

    with replaced(torch.autograd.graph.saved_tensors_hooks, "__init__", make):
        yield


def random_numbers_asked_for() -> AbstractContextManager[None]:
    """A checkpoint asks each device for the module that has its random numbers, meta as well."""
    tools = import_module("torch.utils.checkpoint")
    return replaced(tools, "_get_device_module", lambda original: lambda device="cuda": getattr(torch, device))


FAULTS = (
    Fault("meta: modules go past their hooks", forward_past_hooks, ("ME-01",)),
    Fault("meta: backward hooks get None", zeros_left_out, ("ME-01",)),
    Fault("meta: hooks on tensors are registered twice", twice_on_leaves, ("ME-01",)),
    Fault("meta: what is saved is not packed", nothing_packed, ("ME-01",)),
    Fault("meta: checkpoints ask it for random numbers", random_numbers_asked_for, ("ME-01",), since="2.6"),
)
