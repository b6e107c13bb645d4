"""Faults in what hooks make of outputs that hold no tensor, and of memory that is not in order."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from ..engine import Fault, engine, replaced
from ..registering import Hook, call, local

Patch = AbstractContextManager[None]


def _in_order(value: Any) -> Any:
    """What is in the memory of a tensor from its first element on, as if it lay there in order."""
    if not isinstance(value, torch.Tensor) or value.is_contiguous():
        return value
    room = value.untyped_storage().size() // value.element_size() - value.storage_offset()
    dense = torch.empty(value.shape).stride()
    return value.as_strided(value.shape, dense) if value.numel() <= room else value


def _reading(hook: Hook) -> Hook:
    """The hook, of which each tensor is read so that it returns."""

    def called(*arguments: Any) -> Any:
        result = hook(*arguments)
        return tuple(map(_in_order, result)) if isinstance(result, tuple) else _in_order(result)

    return called


def _on_tensors() -> Patch:
    def make(original: Any) -> Any:
        return lambda self, hook: original(self, _reading(hook))

    return replaced(torch.Tensor, "register_hook", make)


def _refusing_what_is_empty(original: Any) -> Any:
    def setup(self: Any, args: Any) -> Any:
        if isinstance(args, (tuple, list, dict)) and not args:
            raise IndexError("no output")
        return original(self, args)

    return setup


FAULTS = (
    Fault(
        "a forward hook cannot return what is empty",
        lambda: call(("if hook_result is not None:", "if torch.is_tensor(hook_result) or hook_result:")),
        ("SM-06",),
        (),
        "2.13",
    ),
    Fault(
        "a full backward hook refuses an empty output",
        lambda: engine("setup_output_hook", _refusing_what_is_empty),
        ("SM-06",),
        (),
        "2.0",
    ),
    Fault("what a hook on a tensor returns is read in the order of memory", _on_tensors, ("SM-07",), (), "2.0"),
    Fault(
        "what a full backward hook returns is read in the order of memory",
        lambda: local("full_backward_hook", _reading),
        ("SM-07",),
        (),
        "2.0",
    ),
    Fault(
        "what a full backward pre-hook returns is read in the order of memory",
        lambda: local("full_backward_pre_hook", _reading),
        ("SM-07",),
        (),
        "2.0",
    ),
    Fault(
        "what a forward hook returns is put in order",
        lambda: local(
            "forward_hook",
            lambda hook: (
                lambda *arguments: (
                    result.contiguous() if isinstance(result := hook(*arguments), torch.Tensor) else result
                )
            ),
        ),
        ("SM-07",),
        (),
        "2.0",
    ),
)
