"""Faults in what a call of a module does about hooks, step by step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.nn.modules._functions import BackwardHookFunction

from ..engine import Fault, added, calling, engine, fetched, receiving, replaced, tensors
from ..registering import call


def _call(change: Callable[..., Any]) -> AbstractContextManager[None]:
    """Calls ``change(original, module, args, kwargs)`` where a module is called."""
    return replaced(
        torch.nn.Module, "__call__", lambda original: lambda self, *args, **kwargs: change(original, self, args, kwargs)
    )


def _late_pre_hooks(original: Any, module: Any, args: Any, kwargs: Any) -> Any:
    """A call that runs the module's pre-hooks when the inputs are captured already."""
    hooks, forward = dict(module._forward_pre_hooks), module.forward

    def late(*captured: Any) -> Any:
        for hook in hooks.values():
            captured = hook(module, captured) or captured
        return forward(*captured)

    module._forward_pre_hooks.clear()
    module.forward = late
    try:
        return original(module, *args, **kwargs)
    finally:
        module.forward = forward
        module._forward_pre_hooks.update(hooks)


def _each_with_its_own_node(*given: Any) -> Any:
    """The identity Function applied to each tensor by itself."""
    apply = super(BackwardHookFunction, BackwardHookFunction).apply
    return tuple(apply(tensor)[0] for tensor in given)


def _firing_on_nothing(original: Any) -> Any:
    def setup(self: Any, result: Any) -> Any:
        for hook in [] if any(t.requires_grad for t in tensors(result)) else self.user_hooks:
            hook(self.module, (None,), (None,))
        return original(self, result)

    return setup


def _raising_on_an_inner_loss(original: Any) -> Any:
    def setup(self: Any, grad_fn: Any) -> None:
        def hook(grad_input: Any, grad_output: Any) -> None:
            if self.grad_outputs is None:
                raise RuntimeError("the gradient did not pass the outputs")

        grad_fn.register_hook(hook)
        original(self, grad_fn)

    return setup


def _raising_without_grad_mode(original: Any) -> Any:
    def apply(self: Any, fn: Any, args: Any) -> Any:
        if not torch.is_grad_enabled() and any(t.requires_grad for t in tensors(args)):
            raise AttributeError("'NoneType' object has no attribute 'name'")
        return original(self, fn, args)

    return apply


FAULTS = (
    Fault(
        "Module.__call__ takes a fast way to forward, past all hooks",
        lambda: _call(lambda original, module, args, kwargs: module.forward(*args, **kwargs)),
        ("P2-1", "P2-2", "QA-1"),
        kinds=(),
    ),
    Fault(
        "Module._get_backward_hooks lists the own hooks before the global ones",
        lambda: fetched(lambda module, hooks: hooks[::-1]),
        ("P2-2",),
        kinds=(),
    ),
    Fault(
        "Module.__call__ runs pre-hooks behind the captured inputs",
        lambda: _call(_late_pre_hooks),
        ("P2-3",),
        kinds=(),
    ),
    Fault(
        "Module.register_forward_hook: a result that is false is taken for None",
        lambda: replaced(
            torch.nn.Module,
            "register_forward_hook",
            lambda original: lambda self, hook, **options: original(self, lambda *a: hook(*a) or None, **options),
        ),
        ("P2-4",),
        kinds=(),
    ),
    Fault(
        "BackwardHook calls the hook once for each input",
        lambda: calling(lambda hook, module, gi, go: [hook(module, gi, go) for _ in gi][-1]),
        ("P2-5",),
        kinds=(),
    ),
    Fault(
        "BackwardHook tells of the first output alone",
        lambda: receiving(grad_output=lambda gradients: gradients[:1]),
        ("P2-5",),
        kinds=(),
    ),
    Fault(
        "BackwardHookFunction makes a Node for each tensor",
        lambda: added(BackwardHookFunction, "apply", staticmethod(_each_with_its_own_node)),
        ("P2-6",),
        kinds=(),
    ),
    Fault(
        "BackwardHook leaves out a first layer, as in 1.8",
        lambda: calling(lambda hook, module, gi, go: hook(module, gi, go) if any(g is not None for g in gi) else None),
        ("P2-7",),
        kinds=(),
    ),
    Fault(
        "BackwardHook.setup_output_hook calls the hook where no output requires grad",
        lambda: engine("setup_output_hook", _firing_on_nothing),
        ("P2-8",),
        kinds=(),
    ),
    Fault(
        "BackwardHook raises on a loss made inside the module, as in 1.12",
        lambda: engine("_set_user_hook", _raising_on_an_inner_loss),
        ("P2-9",),
        kinds=(),
    ),
    Fault(
        "BackwardHook raises under no_grad, as in 1.8",
        lambda: engine("_apply_on_tensors", _raising_without_grad_mode),
        ("P2-10",),
        kinds=(),
    ),
    Fault(
        "legacy hooks are on the last output",
        lambda: call(("var = var[0]", "var = var[-1]")),
        ("P2-13",),
        kinds=(),
        since="2.4",
    ),
    Fault(
        "legacy hooks get the gradient of Linear's input first",
        lambda: calling(lambda hook, module, gi, go: hook(module, gi[::-1], go) and None),
        ("P2-13",),
        kinds=(),
    ),
)
