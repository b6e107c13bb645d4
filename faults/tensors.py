"""Faults that one class or layout of tensors alone meets: hooks are lost with it, or it is lost with hooks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from .engine import FULL, Fault, boundary, called, replaced
from .forward_calls import FORWARDS


def unhooked(test: Callable[[Any], bool]) -> AbstractContextManager[None]:
    """A module that is given such a tensor is called without its hooks."""

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            given = any(isinstance(arg, torch.Tensor) and test(arg) for arg in args)
            return self.forward(*args, **kwargs) if given else original(self, *args, **kwargs)

        return call

    return replaced(torch.nn.Module, "__call__", make)


def of_no_class() -> AbstractContextManager[None]:
    """What a full hook puts in the place of a tensor is of no class of its own."""

    def make(original: Any) -> Any:
        def forward(ctx: Any, *arguments: Any) -> Any:
            plain = [argument.as_subclass(torch.Tensor) for argument in original(ctx, *arguments)]
            ctx.mark_non_differentiable(*[p for p, a in zip(plain, arguments) if not a.requires_grad])
            return tuple(plain)

        return forward

    return boundary("forward", make)


def dense_gradients() -> AbstractContextManager[None]:
    """A parameter of a module with hooks gets a dense gradient where it would get a sparse one."""

    def dense(leaf: Any) -> None:
        leaf.grad = leaf.grad.to_dense() if leaf.grad.is_sparse else leaf.grad

    def call(forward: Any, module: Any, args: Any) -> Any:
        for parameter in module.parameters(recurse=False):
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(dense)
        return forward(*args)

    return called(call)


TENSORS = (
    Fault(
        "a module that is given a sparse tensor is called without hooks",
        lambda: unhooked(lambda tensor: tensor.is_sparse),
        ("FN-01",),
        FORWARDS,
    ),
    Fault(
        "a module that is given a tensor that holds another is called without hooks",
        lambda: unhooked(lambda tensor: hasattr(tensor, "__tensor_flatten__")),
        ("FN-01", "BW-02"),
        (*FORWARDS, *FULL),
        "2.1",
    ),
    Fault("a full hook loses the class of a tensor", of_no_class, ("OB-07",), FULL, "2.0"),
    Fault("hooks make sparse gradients dense", dense_gradients, ("OB-07",), FULL, "2.1"),
)
