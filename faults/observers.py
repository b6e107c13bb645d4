"""Faults by which the mere presence of a hook changes something."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from .engine import ALL, LEGACY, Fault, Gradients, boundary, called, calling, each, engine, on_outputs, replaced


def returning(change: Any) -> AbstractContextManager[None]:
    """A hook that returns None counts as one that returns something else."""

    def told_and_changed(hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
        hook(module, gi, go)
        return None if all(g is None for g in gi) else change(gi)

    return calling(told_and_changed)


def raising_without_grad_mode() -> AbstractContextManager[None]:
    def call(forward: Any, module: Any, args: Any) -> Any:
        if not torch.is_grad_enabled():
            raise RuntimeError("hooks need grad mode")
        return forward(*args)

    return called(call)


def drawing_numbers() -> AbstractContextManager[None]:
    def call(forward: Any, module: Any, args: Any) -> Any:
        torch.rand(1)
        return forward(*args)

    return called(call)


def warning() -> AbstractContextManager[None]:
    def call(forward: Any, module: Any, args: Any) -> Any:
        warnings.warn("this module has hooks", stacklevel=2)
        return forward(*args)

    return called(call)


def zero_gradients(zeros: Callable[[Any], Any] = torch.zeros_like) -> AbstractContextManager[None]:
    """Leaves get a gradient of zeros as soon as a module with hooks takes them."""

    def call(forward: Any, module: Any, args: Any) -> Any:
        for arg in args:
            if isinstance(arg, torch.Tensor) and arg.is_leaf and arg.requires_grad and arg.grad is None:
                arg.grad = zeros(arg)
        return forward(*args)

    return called(call)


def zeros_laid_out_anew(tensor: Any) -> Any:
    """Zeros in another order in memory, which they keep when gradients are added to them."""
    return torch.zeros_like(tensor).transpose(0, -1).contiguous().transpose(0, -1) if tensor.dim() else tensor * 0


def freezing() -> AbstractContextManager[None]:
    def call(forward: Any, module: Any, args: Any) -> Any:
        for parameter in list(module.parameters())[:1]:
            parameter.requires_grad_(False)
        return forward(*args)

    return called(call)


def losing_gradients() -> AbstractContextManager[None]:
    """The boundary around a module passes no gradient on."""
    return boundary("backward", lambda original: lambda ctx, *gradients: (None,) * len(gradients))


def everything_differentiable() -> AbstractContextManager[None]:
    """Behind the boundary every tensor requires grad, also one that did not."""
    return boundary("forward", lambda original: lambda ctx, *arguments: arguments)


def requiring_grad(tensor: Any) -> Any:
    return tensor if tensor.requires_grad else tensor.requires_grad_()


def copied(tensor: Any) -> Any:
    return tensor.clone() if torch.is_grad_enabled() else tensor


def widened(tensor: Any) -> Any:
    return tensor.double()


def touched(tensor: Any) -> Any:
    """The same tensor with the same numbers, written to once."""
    with torch.no_grad():
        tensor.detach().mul_(1)
    return tensor


def modules_kept() -> AbstractContextManager[None]:
    alive = []

    def call(forward: Any, module: Any, args: Any) -> Any:
        alive.append(module)
        return forward(*args)

    return called(call)


def outputs_kept() -> AbstractContextManager[None]:
    alive = []

    def keep(tensor: Any) -> Any:
        alive.append(tensor)
        return tensor

    return on_outputs(keep)


def raising_in_forward() -> AbstractContextManager[None]:
    def make(original: Any) -> Any:
        def setup(self: Any, args: Any) -> Any:
            raise RuntimeError("Error while setting up backward hooks.")

        return setup

    return engine("setup_output_hook", make)


def doubling_everything() -> AbstractContextManager[None]:
    """Every module, with hooks or without, computes what it should and hands on twice the gradient."""

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if isinstance(result, torch.Tensor) and result.requires_grad and torch.is_grad_enabled():
                return result + (result - result.detach())
            return result

        return call

    return replaced(torch.nn.Module, "__call__", make)


OBSERVERS = (
    Fault(
        "a hook that returns None counts as one that returns zeros",
        lambda: returning(each(torch.zeros_like)),
        ("OB-03",),
        ALL,
    ),
    Fault(
        "the gradient is doubled though the hook returns None",
        lambda: returning(each(lambda g: 2 * g)),
        ("OB-03", "AG-01"),
        ALL,
    ),
    Fault("the gradient changes in its last bits", lambda: returning(each(lambda g: g * (1 + 1e-14))), ("OB-03",), ALL),
    Fault("the output changes in its last bits", lambda: on_outputs(lambda y: y * (1 + 1e-14)), ("OB-02",), ALL),
    Fault("the output changes its dtype", lambda: on_outputs(widened), ("OB-02",), ALL),
    Fault("the output is a copy", lambda: on_outputs(copied), ("BW-12", "OB-07")),
    Fault("the output is a view", lambda: on_outputs(lambda y: y.view_as(y)), ("OB-07",), LEGACY),
    Fault("the output is written to", lambda: on_outputs(touched), ("OB-07",), ALL),
    Fault("the output is detached", lambda: on_outputs(lambda y: y.detach()), ("OB-01",), ALL),
    Fault("the output requires grad under no_grad", lambda: on_outputs(requiring_grad), ("OB-02",), ALL),
    Fault("leaves without gradient get one of zeros", zero_gradients, ("OB-04",), ALL, "1.10"),
    Fault(
        "leaves keep their gradient in another order in memory",
        lambda: zero_gradients(zeros_laid_out_anew),
        ("OB-07",),
        ALL,
        "1.10",
    ),
    Fault("the first parameter is frozen", freezing, ("OB-04",), ALL),
    Fault("inputs get no gradient", losing_gradients, ()),
    Fault("inputs that require no grad come to require it", everything_differentiable, ("GI-02",)),
    Fault("a module with hooks raises under no_grad", raising_without_grad_mode, ("OB-01", "NG-01"), ALL),
    Fault("a module with hooks raises", raising_in_forward, ("OB-01", "BW-02")),
    Fault("a module with hooks draws a random number", drawing_numbers, ("OB-06",), ALL),
    Fault("a module with hooks is never freed", modules_kept, ("OB-08",), ALL),
    Fault("the output of a module with hooks is never freed", outputs_kept, ("OB-08",), ALL),
    Fault("a module with hooks warns", warning, ("OB-05",), ALL),
    Fault("gradients are doubled, with hooks or without", doubling_everything, ("AG-01", "GI-01"), ALL),
)
