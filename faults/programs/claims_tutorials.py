"""Faults in hooks on tensors, in what forward hooks change, and in saving what has hooks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from ..engine import Fault, added, replaced


def _tensor_hook(change: Callable[..., Any]) -> AbstractContextManager[None]:
    """Has ``change(hook, grad)`` run where torch would call a tensor's hook."""
    return replaced(
        torch.Tensor,
        "register_hook",
        lambda original: lambda self, hook: original(self, lambda grad: change(hook, grad)),
    )


def _ignored(hook: Any, *received: Any) -> None:
    hook(*received)


def _none_as_zeros(hook: Any, grad: Any) -> Any:
    result = hook(grad)
    return 0 * grad if result is None else result


def _late_on_leaves(original: Any) -> Any:
    def register(self: Any, hook: Any) -> Any:
        if not self.is_leaf:
            return original(self, hook)
        return self.register_post_accumulate_grad_hook(lambda leaf: _ignored(hook, leaf.grad))

    return register


def _removing(change: Callable[[Any], None]) -> AbstractContextManager[None]:
    """Has ``change(handle)`` run where a handle is to take its hook off."""
    return replaced(torch.utils.hooks.RemovableHandle, "remove", lambda _: change)


def _without_hooks(original: Any) -> Any:
    def save(what: Any, *rest: Any) -> None:
        hooks = dict(what._forward_hooks) if isinstance(what, torch.nn.Module) else {}
        for id in hooks:
            del what._forward_hooks[id]
        original(what, *rest)
        for id, hook in hooks.items():
            what._forward_hooks[id] = hook

    return save


def _ignoring(register: str) -> AbstractContextManager[None]:
    """Ignores what a module's hook returns."""
    return replaced(
        torch.nn.Module,
        register,
        lambda original: lambda self, hook, **options: original(self, lambda *a: _ignored(hook, *a), **options),
    )


FAULTS = (
    Fault("Tensor.register_hook: the result is ignored", lambda: _tensor_hook(_ignored), ("TT-1", "TT-2"), kinds=()),
    Fault(
        "Tensor.register_hook: on a leaf it runs when grad is accumulated",
        lambda: replaced(torch.Tensor, "register_hook", _late_on_leaves),
        ("TT-2",),
        kinds=(),
    ),
    Fault(
        "RemovableHandle.remove takes every hook of the tensor off",
        lambda: _removing(lambda handle: handle.hooks_dict_ref().clear()),
        ("TT-3",),
        kinds=(),
    ),
    Fault(
        "Tensor.register_hook: the hook gets a copy",
        lambda: _tensor_hook(lambda hook, grad: hook(grad.clone())),
        ("TT-4",),
        kinds=(),
    ),
    Fault("Tensor.register_hook: None is taken for zeros", lambda: _tensor_hook(_none_as_zeros), ("TT-5",), kinds=()),
    Fault(
        "Tensor.retain_grad retains nothing",
        lambda: added(torch.Tensor, "retain_grad", lambda self: None),
        ("TT-6",),
        kinds=(),
    ),
    Fault(
        "Module.register_forward_pre_hook: what tutorials return is ignored",
        lambda: _ignoring("register_forward_pre_hook"),
        ("TT-8",),
        kinds=(),
    ),
    Fault(
        "Module.register_forward_hook: what tutorials return is ignored",
        lambda: _ignoring("register_forward_hook"),
        ("TT-8",),
        kinds=(),
    ),
    Fault(
        "nn.functional.dropout2d copies where it is to write in place",
        lambda: replaced(
            torch.nn.functional,
            "dropout2d",
            lambda original: lambda x, p, training, inplace: original(x, p, training, False),
        ),
        ("PW-2",),
        kinds=(),
    ),
    Fault(
        "torch.save leaves out a module's forward hooks",
        lambda: replaced(torch, "save", _without_hooks),
        ("PW-3",),
        kinds=(),
    ),
    Fault("RemovableHandle.remove takes nothing off", lambda: _removing(lambda handle: None), ("PW-4",), kinds=()),
)

OUT_OF_REACH = {"ZH-1": "every fact of it is refuted; tests/contract/test_claims.py has a torch that does as claimed"}
