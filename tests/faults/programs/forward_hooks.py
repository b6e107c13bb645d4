"""Faults in how forward pre-hooks and forward hooks are called."""

from __future__ import annotations

from typing import Any

import torch

from ..engine import Fault, replaced


def _wrapped(name: str, change: Any) -> Any:
    """Registers ``change(hook)`` where a hook is to be registered with the method ``name``."""
    return replaced(
        torch.nn.Module, name, lambda original: lambda self, hook, *a, **k: original(self, change(hook), *a, **k)
    )


FAULTS = (
    Fault(
        "a pre-hook's result is ignored",
        lambda: _wrapped("register_forward_pre_hook", lambda hook: lambda *a: hook(*a) and None),
        ("FW-04",),
        kinds=(),
    ),
    Fault(
        "a forward hook is called every second time",
        lambda: _every_second("register_forward_hook"),
        ("FW-08",),
        kinds=(),
    ),
)


def _every_second(name: str) -> Any:
    def change(hook: Any) -> Any:
        calls: list[None] = []

        def skipping(*arguments: Any) -> Any:
            calls.append(None)
            return hook(*arguments) if len(calls) % 2 else None

        return skipping

    return _wrapped(name, change)
