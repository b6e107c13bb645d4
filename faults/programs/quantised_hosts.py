"""Faults that show on what is quantised, fused or wrapped, on modules that live for one call, and on compiled ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from torch import nn

from ..engine import Fault, replaced
from .clauses_on_hosts import MODULE, _compiled_without_its_hooks, _held_weakly, _where, on_hosts


def _is_from(place: str, name: str, module: Any) -> bool:
    """Whether the class of a module has that name and is from such a place in torch, which has moved."""
    return type(module).__name__ == name and place in type(module).__module__


def _of_class(place: str, name: str, registering: str) -> Callable[[], AbstractContextManager[None]]:
    return lambda: _where(partial(_is_from, place, name), registering)


def _called_past_hooks_if_compiled_with_backward(original: Any) -> Any:
    """What is compiled in place, its backward included, is the forward of a module rather than its call."""
    past = _compiled_without_its_hooks(original)

    def compile(self: Any, **options: Any) -> None:
        (past if options.get("backend") == "aot_eager" else original)(self, **options)

    return compile


def _late_hooks_run(original: Any) -> Any:
    """The output of a module that is equal to another one, and has no hooks yet, calls in backward those that come."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if "__eq__" in vars(type(self)) and not self._backward_hooks and getattr(result, "requires_grad", False):
            result.register_hook(partial(late, self))
        return result

    def late(module: Any, grad: Any) -> None:
        for hook in module._backward_hooks.values() if module._is_full_backward_hook else ():
            hook(module, (grad,), (grad,))

    return call


FAULTS: tuple[Fault, ...] = (
    on_hosts(
        "what is quantised dynamically takes no forward hooks",
        _of_class("quantized.dynamic", "Linear", "register_forward_hook"),
        "quantised dynamically",
    ),
    on_hosts(
        "what is quantised takes no full backward pre-hooks",
        _of_class("nn.quantized.modules.linear", "Linear", "register_full_backward_pre_hook"),
        "quantised",
    ),
    on_hosts(
        "what fuse_modules fused takes no full backward hooks",
        _of_class("intrinsic", "ConvReLU2d", "register_full_backward_hook"),
        "fused by name",
    ),
    on_hosts(
        "a DataParallel takes no pre-hooks",
        lambda: _where(lambda module: isinstance(module, nn.DataParallel), "register_forward_pre_hook"),
        "DataParallel",
    ),
    on_hosts("full hooks go with a module that is made for a call", _held_weakly, "temporary"),
    on_hosts(
        "full hooks that come after a call run where that was of a module that is gone",
        lambda: replaced(MODULE, "_call_impl", _late_hooks_run),
        "temporary",
    ),
    on_hosts(
        "what is compiled in place with its backward is called past its hooks",
        lambda: replaced(MODULE, "compile", _called_past_hooks_if_compiled_with_backward),
        "Module.compile with its backward",
        clause="HO-07",
        since="2.4",
    ),
)
