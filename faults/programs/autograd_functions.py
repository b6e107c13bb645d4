"""Faults in how a Function of one's own is made, and in what it does to hooks around it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, replaced
from ..registering import edited

FUNCTION = torch.autograd.function


def _without_the_error(backward: Callable[..., Any]) -> Callable[..., Any]:
    """What is marked runs without grad mode, and no error comes of differentiating it again."""

    def wrapper(*args: Any) -> Any:
        with torch.no_grad():
            return backward(*args)

    return wrapper


def _with_the_error_alone(backward: Callable[..., Any]) -> Callable[..., Any]:
    """What is marked runs in the grad mode that there is, and refuses to be differentiated again."""
    marked = torch.autograd.function.once_differentiable(lambda ctx, *grads: grads)

    def wrapper(ctx: Any, *grads: Any) -> Any:
        result = backward(ctx, *grads)
        return marked(ctx, result) if torch.is_grad_enabled() else result

    return wrapper


def _marking(mark: Callable[..., Any]) -> AbstractContextManager[None]:
    return replaced(FUNCTION, "once_differentiable", lambda original: mark)


def _in_no_grad_mode(original: Any) -> Any:
    """A backward of one's own runs without grad mode, whatever is built."""

    def apply(self: Any, *args: Any) -> Any:
        with torch.no_grad():
            return original(self, *args)

    return apply


def _ignored(mark: str, change: tuple[str, str]) -> AbstractContextManager[None]:
    """Edits one of the methods by which a Function marks its ctx."""
    return edited(FUNCTION.FunctionCtx, mark, change)


def _under_transforms(owner: str, name: str, change: tuple[str, str]) -> AbstractContextManager[None]:
    """Edits how a Function meets the transforms of torch.func."""
    module = import_module("torch._functorch.autograd_function")
    return edited(getattr(module, owner) if owner else module, name, change)


def _defaults_left_out(original: Any) -> Any:
    """A Function is called without those of its inputs that are left at their defaults."""

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if torch._C._are_functorch_transforms_active():
            return original.__func__(cls, *args, **kwargs)
        return super(FUNCTION.Function, cls).apply(*args, **kwargs)

    return classmethod(apply)


def _keeping(original: Any) -> Any:
    """What Functions give is kept."""
    results: list[Any] = []

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        results.append(original.__func__(cls, *args, **kwargs))
        return results[-1]

    return classmethod(apply)


fault = partial(Fault, kinds=(), since="2.13")

FAULTS = (
    Fault(
        "what is once differentiable is silently so",
        lambda: _marking(_without_the_error),
        ("AF-01", "AF-02"),
        kinds=(),
    ),
    Fault(
        "what is once differentiable can be differentiated twice",
        lambda: _marking(lambda backward: backward),
        ("AF-01", "AF-02"),
        kinds=(),
    ),
    Fault(
        "what is once differentiable runs in grad mode", lambda: _marking(_with_the_error_alone), ("AF-01",), kinds=()
    ),
    Fault(
        "a backward of one's own never runs in grad mode",
        lambda: replaced(FUNCTION.BackwardCFunction, "apply", _in_no_grad_mode),
        ("AF-01",),
        kinds=(),
    ),
    fault(
        "what is marked as non-differentiable is differentiable",
        lambda: _ignored("mark_non_differentiable", ("self.non_differentiable = args", "pass")),
        ("AF-03",),
    ),
    fault(
        "gradients are materialized whatever is asked",
        lambda: _ignored("set_materialize_grads", ("self.materialize_grads = value", "pass")),
        ("AF-03",),
    ),
    fault(
        "what a Function wrote to is not marked",
        lambda: _ignored("mark_dirty", ("self.dirty_tensors = args", "pass")),
        ("AF-04",),
    ),
    fault(
        "setup_context is not given inputs that are left out",
        lambda: replaced(FUNCTION.Function, "apply", _defaults_left_out),
        ("AF-05",),
    ),
    fault(
        "what a Function gives is kept",
        lambda: replaced(FUNCTION.Function, "apply", _keeping),
        ("AF-11",),
    ),
    fault(
        "torch.func.vmap: what is saved of a Function is not known to be batched",
        lambda: _under_transforms(
            "CtxCustomSave",
            "save_for_backward",
            ("self._pt_saved_tensors_bdims = bdims", "self._pt_saved_tensors_bdims = (None,) * len(bdims)"),
        ),
        ("AF-06",),
    ),
    fault(
        "torch.func.vmap: what samples share has the gradient of the first",
        lambda: _under_transforms(
            "", "reductify_leaf", ("grad_input.sum(grad_input_bdim)", "grad_input.select(grad_input_bdim, 0)")
        ),
        ("AF-06",),
    ),
    fault(
        "what a Function wrote to is marked for its first tensor alone",
        lambda: _ignored("mark_dirty", ("self.dirty_tensors = args", "self.dirty_tensors = args[:1]")),
        ("AF-04",),
    ),
)
