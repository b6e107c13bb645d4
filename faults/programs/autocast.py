"""Faults in the dtypes that hooks see under autocast."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.utils.checkpoint

from ..engine import Fault, calling, each, receiving, replaced
from ..registering import edited

Tensor = torch.Tensor


def registered(owner: Any, name: str, change: Any) -> AbstractContextManager[None]:
    """Registers ``change(hook)`` where a hook is to be registered with ``name``."""
    return replaced(owner, name, lambda original: lambda self, hook, *a, **k: original(self, change(hook), *a, **k))


def lowered(hook: Any) -> Any:
    """Shows the hook its arguments as the layer casts them."""

    def call(module: Any, args: Any, *rest: Any) -> Any:
        cast = torch.is_autocast_enabled("cpu")
        return hook(module, tuple(a.bfloat16() for a in args) if cast else args, *rest)

    return call


def outside(hook: Any) -> Any:
    """Calls the hook with autocast off."""

    def call(*args: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return hook(*args)

    return call


def in_a_region(original: Any) -> Any:
    """Runs backward under autocast."""

    def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return original(self, *args, **kwargs)

    return backward


def cast(hook: Any, module: Any, grad_input: Any, grad_output: Any) -> Any:
    """Casts what the hook returns to what it got."""
    result = hook(module, grad_input, grad_output)
    return result and tuple(r.to(g.dtype) for r, g in zip(result, grad_input))


FAULTS = (
    Fault(
        "autocast: the second pass of a checkpoint has the usual dtype",
        lambda: edited(
            torch.utils.checkpoint,
            "_get_autocast_kwargs",
            ("torch.get_autocast_dtype(device_type)", "None"),
            ("torch.get_autocast_dtype('cpu')", "None"),
        ),
        ("AU-09",),
        since="2.13",
    ),
    Fault(
        "autocast: forward hooks see arguments cast",
        lambda: registered(torch.nn.Module, "register_forward_hook", lowered),
        ("AU-01",),
    ),
    Fault(
        "autocast: full hooks get gradients in full precision",
        lambda: receiving(grad_output=each(Tensor.float)),
        ("AU-02", "AU-03"),
    ),
    Fault(
        "autocast: what full hooks return is ignored",
        lambda: calling(lambda hook, *args: hook(*args) and None),
        ("AU-04", "AU-11"),
    ),
    Fault(
        "autocast: full pre-hooks get gradients in full precision",
        lambda: registered(
            torch.nn.Module,
            "register_full_backward_pre_hook",
            lambda hook: lambda module, gradients: hook(module, tuple(map(Tensor.float, gradients))),
        ),
        ("AU-05",),
    ),
    Fault(
        "autocast: tensor hooks get gradients in full precision",
        lambda: registered(Tensor, "register_hook", lambda hook: lambda gradient: hook(gradient.float())),
        ("AU-06",),
    ),
    Fault(
        "autocast: post-accumulate hooks are called twice",
        lambda: registered(Tensor, "register_post_accumulate_grad_hook", lambda hook: lambda p: (hook(p), hook(p))[1]),
        ("AU-07",),
    ),
    Fault(
        "autocast: what forward hooks return is cast",
        lambda: registered(
            torch.nn.Module,
            "register_forward_hook",
            lambda hook: lambda module, args, output: hook(module, args, output).to(output.dtype),
        ),
        ("AU-08",),
    ),
    Fault(
        "autocast: forward hooks run outside of the region",
        lambda: registered(torch.nn.Module, "register_forward_hook", outside),
        ("AU-09",),
    ),
    Fault("autocast: backward runs in a region", lambda: replaced(Tensor, "backward", in_a_region), ("AU-10",)),
    Fault("autocast: what full hooks return is cast to what they got", lambda: calling(cast), ("AU-11",)),
    Fault(
        "autocast: a function that it decorates runs outside of the region",
        lambda: replaced(torch.amp.autocast_mode, "autocast_decorator", lambda original: lambda region, func: func),
        ("AU-09",),
        since="2.0",
    ),
)
