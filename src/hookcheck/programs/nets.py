"""What do programs run? Modules made of a function, so that a program shows its whole network in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookcheck.probe.lazy import nn, torch


def net(forward: Callable[..., Any], **parts: Any) -> Any:
    """A module that computes ``forward(module, *args, **kwargs)``.

    A part is an attribute of the module: modules are its submodules, and numbers become parameters.
    """

    module = type("Net", (nn.Module,), {"forward": forward})()
    for name, part in parts.items():
        setattr(module, name, nn.Parameter(torch.tensor(part)) if isinstance(part, float) else part)
    return module


def times(factor: float) -> Any:
    """``y = factor * x``: grad_input is ``factor * grad_output``."""
    return net(lambda module, x: factor * x)


def weighted(weight: float) -> Any:
    """``y = weight * x`` with a parameter: its gradient is the sum of ``grad_output * x``."""
    return net(lambda module, x: module.weight * x, weight=weight)


def leaf(*values: float) -> Any:
    """A vector that requires grad."""
    return torch.tensor(values, requires_grad=True)
