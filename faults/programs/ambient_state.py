"""Faults in the state of the program that hooks run in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from importlib import import_module
from threading import Thread
from typing import Any

import torch
import torch.utils.checkpoint

from ..engine import Fault, calling, replaced
from ..registering import edited

Patch = AbstractContextManager[None]


def _in_a_thread(original: Any) -> Any:
    """Registers tensor hooks that run in a thread of their own."""

    def register(self: Any, hook: Any) -> Any:
        def call(gradient: Any) -> Any:
            answers: list[Any] = []
            thread = Thread(target=lambda: answers.append(hook(gradient)))
            thread.start()
            thread.join()
            return answers[0]

        return original(self, call)

    return register


def _as_if_alone(original: Any) -> Any:
    """Calls forward hooks with torch's usual default dtype."""

    def register(self: Any, hook: Any, **kwargs: Any) -> Any:
        def call(*args: Any) -> Any:
            before = torch.get_default_dtype()
            torch.set_default_dtype(torch.float32)
            try:
                return hook(*args)
            finally:
                torch.set_default_dtype(before)

        return original(self, call, **kwargs)

    return register


def _subclasses_off(original: Any) -> Any:
    """Calls tensor hooks with subclasses turned off."""

    def register(self: Any, hook: Any) -> Any:
        def call(gradient: Any) -> Any:
            with torch._C.DisableTorchFunctionSubclass():
                return hook(gradient)

        return original(self, call)

    return register


@contextmanager
def _nothing_is_restored() -> Iterator[None]:
    """Has both variants of checkpoint forget random numbers and autocast."""
    checkpoint: Any = torch.utils.checkpoint
    off: Any = ({"enabled": False}, {"enabled": False})
    numbers = replaced(torch, "set_rng_state", lambda original: lambda state: None)
    with numbers, replaced(checkpoint, "_get_autocast_kwargs", lambda original: lambda *args, **kwargs: off):
        yield


def _contexts(change: Callable[[Any, Any], tuple[Any, Any]]) -> Patch:
    """Gives ``checkpoint`` other contexts than those that ``context_fn`` gives."""

    def make(original: Any) -> Any:
        def run(*args: Any, context_fn: Any = None, **kwargs: Any) -> Any:
            given = {} if context_fn is None else {"context_fn": lambda: change(*context_fn())}
            return original(*args, **given, **kwargs)

        return run

    return replaced(torch.utils.checkpoint, "checkpoint", make)


def _numbers_go_on(name: str, owner: Any) -> Patch:
    """The second pass of a checkpoint leaves the random numbers where it came to."""
    return edited(owner, name, ("devices=rng_devices, enabled=", "devices=rng_devices, enabled=False and "))


def _recorded(hook: Any, module: Any, grad_input: Any, grad_output: Any) -> Any:
    """Calls a hook in grad mode."""
    with torch.enable_grad():
        return hook(module, grad_input, grad_output)


def _preserving(original: Any) -> Any:
    """Has the composable checkpoint preserve random numbers whatever is asked."""
    return wraps(original)(lambda module, **options: original(module, **{**options, "preserve_rng_state": True}))


def _as_any_context_decorates(original: Any) -> Any:
    """Decorates as contexts do that set nothing before they are entered."""
    return import_module("torch.utils._contextlib")._DecoratorContextManager.__call__


FAULTS = (
    Fault(
        "composable checkpoint: random numbers are preserved whatever is asked",
        lambda: replaced(import_module("torch.distributed._composable"), "checkpoint", _preserving),
        ("AB-05",),
        kinds=(),
        since="2.6",
    ),
    Fault(
        "ambient state: tensor hooks run in a thread of their own",
        lambda: replaced(torch.Tensor, "register_hook", _in_a_thread),
        ("AB-01",),
        kinds=(),
    ),
    Fault(
        "ambient state: forward hooks run under the usual default dtype",
        lambda: replaced(torch.nn.Module, "register_forward_hook", _as_if_alone),
        ("AB-01",),
        kinds=(),
    ),
    Fault(
        "ambient state: tensor hooks run with subclasses off",
        lambda: replaced(torch.Tensor, "register_hook", _subclasses_off),
        ("AB-02",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "ambient state: the second pass of a checkpoint restores nothing",
        _nothing_is_restored,
        ("AB-03",),
        kinds=(),
        since="2.4",
    ),
    Fault(
        "ambient state: checkpoint takes no context for the second pass",
        lambda: _contexts(lambda first, second: (first, contextlib.nullcontext())),
        ("AB-04",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "checkpoint: random numbers go on from the second pass",
        lambda: _numbers_go_on("_checkpoint_without_reentrant_generator", torch.utils.checkpoint),
        ("AB-05",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "reentrant checkpoint: random numbers go on from the second pass",
        lambda: _numbers_go_on("backward", torch.utils.checkpoint.CheckpointFunction),
        ("AB-05",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "checkpoint: random numbers are preserved whatever is asked",
        lambda: edited(
            torch.utils.checkpoint,
            "checkpoint",
            ('kwargs.pop("preserve_rng_state", True)', 'kwargs.pop("preserve_rng_state", True) or True'),
        ),
        ("AB-05",),
        kinds=(),
        since="2.13",
    ),
    Fault("full backward hooks run in grad mode", lambda: calling(_recorded), ("AB-06",), kinds=()),
    Fault(
        "set_grad_enabled: to decorate a hook leaves the mode set",
        lambda: replaced(torch.set_grad_enabled, "__call__", _as_any_context_decorates),
        ("AB-06",),
        kinds=(),
        since="2.3",
    ),
    Fault(
        "enable_grad stays where a hook raises in it",
        lambda: edited(
            torch.enable_grad,
            "__exit__",
            ("torch._C._set_grad_enabled(self.prev)", "exc_type or torch._C._set_grad_enabled(self.prev)"),
        ),
        ("AB-06",),
        since="2.0",
    ),
)
