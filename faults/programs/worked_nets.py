"""Faults in what hooks see and change in whole nets."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from ..engine import Fault, calling, each, receiving, replaced
from ..registering import Hook, every_second, silenced

OUT_OF_REACH = {"WN-02": "torchvision need not be installed; WN-01 does the same with a smaller net"}

DROPOUT, COUNTING, MEMORY, LAMBDAS, ERROR = ("WN-01", "WN-03", "WN-04", "WN-05", "WN-06")


def _forward(change: Any) -> AbstractContextManager[None]:
    """Registers ``change(hook)`` where a forward hook is registered."""
    return replaced(
        torch.nn.Module, "register_forward_hook", lambda original: lambda self, hook: original(self, change(hook))
    )


def _in_training(hook: Hook) -> Hook:
    """The hook, silent on modules in evaluation mode."""
    return lambda module, *given: hook(module, *given) if module.training else None


def _keeping(original: Any) -> Any:
    """A hook on a tensor after which its gradient stays."""
    alive: list[Any] = []

    def register(self: Any, hook: Any) -> Any:
        def keeping(grad: Any) -> Any:
            alive.append(grad)
            return hook(grad)

        return original(self, keeping)

    return register


def _sharing(original: Any) -> Any:
    """The gradient of one result in the place of another's: one memory for all that are retained."""
    retained: list[Any] = []

    def retain(self: Any) -> None:
        retained.append(self)
        self.register_hook(lambda grad: setattr(self, "grad", retained[0].grad if len(retained) > 1 else grad.clone()))

    return retain


def _no_more(original: Any) -> Any:
    """Hooks are not called once gradients were set to zero."""
    off: list[None] = []

    def zero(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        for module in self.modules():
            if off:
                module._forward_hooks.clear()
        off.append(None)

    return zero


FAULTS = (
    Fault("worked nets: what a forward hook returns is ignored", lambda: _forward(silenced), (DROPOUT,)),
    Fault("worked nets: forward hooks are silent in evaluation mode", lambda: _forward(_in_training), (DROPOUT,)),
    Fault(
        "worked nets: a forward hook is called every second time", lambda: _forward(every_second), (COUNTING, LAMBDAS)
    ),
    Fault(
        "worked nets: a full hook gets a gradient of what needs none",
        lambda: calling(lambda hook, module, gi, go: hook(module, tuple(go if g is None else g for g in gi), go)),
        (COUNTING,),
    ),
    Fault(
        "worked nets: gradients that hooks saw stay",
        lambda: replaced(torch.Tensor, "register_hook", _keeping),
        (MEMORY,),
    ),
    Fault(
        "worked nets: gradients that are retained share their memory",
        lambda: replaced(torch.Tensor, "retain_grad", _sharing),
        (MEMORY,),
    ),
    Fault(
        "worked nets: zeroing gradients takes hooks away",
        lambda: replaced(torch.nn.Module, "zero_grad", _no_more),
        (LAMBDAS,),
    ),
    Fault("worked nets: gradients are doubled", lambda: receiving(each(lambda g: 2 * g)), (LAMBDAS, ERROR)),
)
