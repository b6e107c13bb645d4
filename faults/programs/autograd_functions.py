"""Faults in how a Function of one's own is made, and in what it does to hooks around it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from ..engine import Fault, replaced

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
)
