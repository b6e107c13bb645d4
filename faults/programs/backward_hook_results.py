"""Faults in what is made of results that backward hooks should not return."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from ..engine import Fault, calling, fetched
from . import full_backward_pre_hooks as pre


def at_once(hooks: list[Any], *arguments: Any) -> Any:
    """Calls all hooks before it looks at what they return."""
    results = [hook(*arguments) for hook in hooks]
    return next((result for result in results if result is not None), None)


def tolerant(hook: Any, module: Any, *gradients: Any) -> Any:
    """What is no tuple of tensors like the first gradients counts as None."""
    result = hook(module, *gradients)
    fits = (
        isinstance(result, (tuple, list))
        and len(result) == len(gradients[0])
        and all(like(new, old) for new, old in zip(result, gradients[0]))
    )
    return result if fits else None


def like(new: Any, old: Any) -> bool:
    """Whether a tensor has the shape and dtype of another."""
    return isinstance(new, torch.Tensor) and (new.shape, new.dtype) == (old.shape, old.dtype)


def filled(hook: Any, module: Any, *gradients: Any) -> Any:
    """None in a result stands for what was there."""
    result = hook(module, *gradients)
    return result and tuple(old if new is None else new for new, old in zip(result, gradients[0]))


def wrapped(hook: Any, *args: Any) -> Any:
    """A bare tensor is the only gradient."""
    result = hook(*args)
    return (result,) if isinstance(result, torch.Tensor) else result


def none_but_none(hook: Any, module: Any, grad_input: Any, grad_output: Any) -> Any:
    """Where there is no grad_input, nothing may be returned, not even None in a tuple."""
    result = hook(module, grad_input, grad_output)
    if result is not None and grad_input[0] is None:
        raise RuntimeError("there is nothing to replace")
    return result


FAULTS = (
    Fault(
        "results of full hooks: those that do not fit count as None",
        lambda: calling(tolerant),
        ("AC-21", "AC-25", "BR-02", "BR-03"),
    ),
    Fault(
        "results of pre-hooks: those that do not fit count as None",
        lambda: pre.calling(tolerant),
        ("AC-22", "BR-05"),
        since="2.0",
    ),
    Fault("results of full hooks: None stands for what was there", lambda: calling(filled), ("AC-23",)),
    Fault("results of pre-hooks: None stands for what was there", lambda: pre.calling(filled), ("AC-24",), since="2.0"),
    Fault(
        "results of full hooks: a tuple of None is refused",
        lambda: calling(none_but_none),
        ("AC-25", "BR-01"),
    ),
    Fault(
        "results of full hooks: a tensor is the only gradient",
        lambda: calling(wrapped),
        ("BR-04",),
    ),
    Fault(
        "results of full hooks: they are counted when all were called",
        lambda: fetched(lambda module, hooks: [partial(at_once, hooks)]),
        ("AC-21",),
    ),
)
