"""Faults in what becomes of hooks that refer to what they are registered on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import nn

from ..autograd import on_nodes, on_tensors
from ..engine import Fault, replaced
from ..registering import Hook, local
from .lifetime import keeping, removed


@contextmanager
def _held(*patches: Any) -> Iterator[None]:
    """Registers hooks in places that hold them for good."""
    hooks: list[Hook] = []

    def hold(hook: Hook) -> Hook:
        hooks.append(hook)
        return hook

    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch(hold))
        yield


def _holding_a_part(original: Any) -> Any:
    """Norms a weight by a pre-hook that holds what it is computed of."""

    def norm(module: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(module, *args, **kwargs)
        for hook in module._forward_pre_hooks.values():
            hook.part = module.weight_v
        return result

    return norm


FAULTS = (
    Fault(
        "the pre-hook of weight_norm holds a parameter",
        lambda: replaced(nn.utils, "weight_norm", _holding_a_part),
        ("LT-18",),
        kinds=(),
    ),
    Fault("hooks of tensors are held for good", lambda: _held(on_tensors), ("LT-15", "LT-16"), kinds=()),
    Fault("hooks of Nodes are held for good", lambda: _held(on_nodes), ("LT-15", "LT-16"), kinds=()),
    Fault(
        "forward hooks are held for good",
        lambda: _held(partial(local, "forward_hook")),
        ("LT-15", "LT-16"),
        kinds=(),
    ),
    Fault("removed hooks are held for good", keeping(removed), ("LT-16",), kinds=()),
)
