"""Faults in hooks that are registered on one saved tensor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import torch

from ..engine import Fault, replaced
from .saved_tensors_hooks import kept_result, pairs


def registering(change: Callable[..., None]) -> AbstractContextManager[None]:
    """Calls ``change(register, pack, unpack)`` where hooks are registered on a saved tensor."""
    return replaced(
        torch._C._autograd.SavedTensor,
        "register_hooks",
        lambda original: lambda self, pack, unpack: change(lambda p, u: original(self, p, u), pack, unpack),
    )


def lazily(register: Any, pack: Any, unpack: Any) -> None:
    """Packs when the tensor is unpacked."""
    register(lambda t: t, lambda t: unpack(pack(t)))


def suppressing(register: Any, pack: Any, unpack: Any) -> None:
    """Leaves hooks out that cannot be registered."""
    with suppress(RuntimeError):
        register(pack, unpack)


def _at_once() -> AbstractContextManager[None]:
    """Has contexts unpack each tensor as soon as it is packed, and hand it on in backward."""
    return replaced(
        torch.autograd.graph.saved_tensors_hooks,
        "__init__",
        lambda original: (
            lambda self, pack, unpack: original(self, lambda tensor: unpack(pack(tensor)), lambda tensor: tensor)
        ),
    )


FAULTS = (
    Fault(
        "saved tensor: what is packed is unpacked at once",
        _at_once,
        ("ST-35",),
        kinds=(),
        since="2.0",
    ),
    Fault("saved tensor: pack waits for unpack", lambda: registering(lazily), ("ST-10",)),
    Fault("saved tensor: hooks are not registered", lambda: registering(lambda *_: None), ("ST-10", "ST-16")),
    Fault(
        "saved tensor: unpack is called once and its result kept",
        lambda: registering(lambda register, pack, unpack: register(pack, kept_result(unpack))),
        ("ST-11",),
    ),
    Fault("saved tensor: registration after the release is ignored", lambda: registering(suppressing), ("ST-12",)),
    Fault(
        "saved tensors: pack gets a detached tensor",
        lambda: pairs(lambda hook: lambda t: hook(t.detach())),
        ("ST-16",),
    ),
)
