"""Faults that worked programs notice: hooks that are skipped, changed, kept, or whose results are not used."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from ..engine import Fault, replaced

MODULE, HANDLE = nn.Module, torch.utils.hooks.RemovableHandle


def _received(change: Any) -> AbstractContextManager[None]:
    """Full backward hooks receive ``change(grad_input)``."""

    def make(original: Any) -> Any:
        def init(self: Any, module: Any, user_hooks: Any, *rest: Any) -> None:
            hooks = [lambda m, inputs, outputs, hook=hook: hook(m, change(inputs), outputs) for hook in user_hooks]
            original(self, module, hooks, *rest)

        return init

    return replaced(torch.utils.hooks.BackwardHook, "__init__", make)


def _past_hooks(which: type) -> AbstractContextManager[None]:
    """Modules of a class are called past their hooks."""

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self.forward(*args, **kwargs) if isinstance(self, which) else original(self, *args, **kwargs)

        return call

    return replaced(MODULE, "__call__", make)


def _ignored() -> AbstractContextManager[None]:
    """What a forward hook returns is not used."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any) -> Any:
            return original(self, lambda *received: [hook(*received), None][1])

        return register

    return replaced(MODULE, "register_forward_hook", make)


def _on_tensors(change: Any) -> AbstractContextManager[None]:
    """A hook on a tensor gives ``change(gradient, result)``."""

    def make(original: Any) -> Any:
        return lambda self, hook: original(self, lambda grad: change(grad, hook(grad)))

    return replaced(torch.Tensor, "register_hook", make)


FAULTS = (
    Fault(
        "systems: full backward hooks receive scaled gradients",
        lambda: _received(lambda inputs: tuple(None if g is None else 1.001 * g for g in inputs)),
        ("SYS-01", "SYS-02"),
    ),
    Fault(
        "systems: activations are called past their hooks",
        lambda: _past_hooks(nn.ReLU),
        ("SYS-04",),
        since="1.7",
    ),
    Fault(
        "systems: convolutions are called past their hooks",
        lambda: _past_hooks(nn.Conv2d),
        ("SYS-04", "SYS-05", "SYS-06"),
        since="1.7",
    ),
    Fault("systems: what forward hooks return is not used", _ignored, ("SYS-06",), since="1.7"),
    Fault(
        "systems: handles of hooks take nothing off",
        lambda: replaced(HANDLE, "remove", lambda original: lambda self: None),
        ("SYS-01", "SYS-03", "SYS-06"),
        since="1.7",
    ),
    Fault(
        "systems: what hooks on tensors return is not used",
        lambda: _on_tensors(lambda gradient, result: None),
        ("SYS-03",),
        since="1.7",
    ),
    Fault(
        "systems: what hooks on tensors return is taken twice",
        lambda: _on_tensors(lambda gradient, result: 2 * result),
        ("SYS-03",),
        since="1.7",
    ),
)
