"""The forms of activation checkpointing that a torch has, and the chains of modules that they are tried on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.nets import net

CHECKPOINT = "torch.utils.checkpoint.checkpoint"
REENTRANT, NON_REENTRANT = "reentrant", "non-reentrant"
COMPOSABLE, WRAPPER = "composable", "checkpoint_wrapper"


def variants() -> dict[str, Callable[..., Any]]:
    """The forms of ``checkpoint`` that this torch has: reentrant, since 1.11 the other, and what is made of that: hooks
    of the module that is the region, and a module around it."""
    checkpoint = tool("checkpoint")
    chooses = "use_reentrant" in inspect.signature(checkpoint).parameters
    forms: dict[str, Callable[..., Any]] = {}
    forms[REENTRANT] = partial(checkpoint, use_reentrant=True) if chooses else checkpoint
    if chooses:
        forms[NON_REENTRANT] = partial(checkpoint, use_reentrant=False)
    if (
        hasattr(import_module("torch.utils.checkpoint"), "set_checkpoint_early_stop")
        and torch.distributed.is_available()
    ):
        forms.update({COMPOSABLE: composable, WRAPPER: wrapped})
    return forms


def as_module(region: Any) -> Any:
    """What is to be run, as a module."""
    return region if isinstance(region, nn.Module) else net(lambda module, *args: region(*args))


def composable(region: Any, *args: Any) -> Any:
    """Runs what hooks on it checkpoint."""
    checkpoint: Any = import_module("torch.distributed._composable").checkpoint
    module = as_module(region)
    if checkpoint.state(module) is None:
        checkpoint(module)
    return module(*args)


def wrapped(region: Any, *args: Any) -> Any:
    """Runs what a module around it checkpoints."""
    wrapper: Any = import_module("torch.distributed.algorithms._checkpoint.checkpoint_wrapper")
    return wrapper.checkpoint_wrapper(as_module(region), wrapper.CheckpointImpl.NO_REENTRANT)(*args)


def wrapped_in_place(module: Any) -> Any:
    """What is put around a module in the network that it is in, to checkpoint it."""
    wrapper: Any = import_module("torch.distributed.algorithms._checkpoint.checkpoint_wrapper")
    network = nn.Sequential(module)
    wrapper.apply_activation_checkpointing(network, check_fn=lambda part: part is module)
    return network[0]


def tool(name: str) -> Any:
    """What ``torch.utils.checkpoint`` has under a name."""
    return getattr(import_module("torch.utils.checkpoint"), name)


def scales(*weights: float) -> Any:
    """A chain of modules, each of which multiplies its input by a weight; the product needs both in backward."""

    class Scale(nn.Module):
        def __init__(self, weight: float) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([float(weight)]))

        def forward(self, x: Any) -> Any:
            return self.weight * x

    return nn.Sequential(*map(Scale, weights))


def square() -> Any:
    """A module that gives factor · x², and a factor that it is given by keyword."""
    return net(lambda module, x, factor=1.0: factor * x * x)


def leaf(value: float = 7.0) -> Any:
    """A leaf of one number."""
    return torch.tensor([value], requires_grad=True)


def entries(net: Any) -> list[str]:
    """Has forward hooks list which layer is entered and left: ``+0, -0`` for the first."""
    log: list[str] = []
    for i, layer in enumerate(net):
        layer.register_forward_pre_hook(lambda module, args, i=i: log.append(f"+{i}"))
        layer.register_forward_hook(lambda module, args, output, i=i: log.append(f"-{i}"))
    return log


THROUGH = ["+0", "-0", "+1", "-1"]
"""What `entries` lists of two layers that are run through."""
