"""Faults in how hooks of modules are collected, called and deprecated."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from ..engine import Fault, replaced


def _alone(original: Any) -> Any:
    """Registers a hook in the place of those that are there."""

    def register(self: Any, hook: Any, **options: Any) -> Any:
        self._forward_hooks.clear()
        return original(self, hook, **options)

    return register


def _warning_at_once(original: Any) -> Any:
    def register(self: Any, hook: Any) -> Any:
        warnings.warn("register_backward_hook is deprecated", FutureWarning, stacklevel=2)
        return original(self, hook)

    return register


FAULTS = (
    Fault(
        "Module.register_forward_hook takes the hooks off that are there",
        lambda: replaced(torch.nn.Module, "register_forward_hook", _alone),
        ("QA-1",),
        kinds=(),
    ),
    Fault(
        "Module.__call__ does not tell that legacy hooks are deprecated",
        lambda: replaced(torch.nn.Module, "_maybe_warn_non_full_backward_hook", lambda _: lambda *received: None),
        ("QA-3",),
        kinds=(),
    ),
    Fault(
        "Module.register_backward_hook tells that it is deprecated",
        lambda: replaced(torch.nn.Module, "register_backward_hook", _warning_at_once),
        ("QA-3",),
        kinds=(),
    ),
)

OUT_OF_REACH = {"QA-2": "every fact of it is refuted; tests/contract/test_claims.py has a torch that does as claimed"}
