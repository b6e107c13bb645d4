"""Faults in full backward pre-hooks: in what they are given, and in what becomes of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch
from torch.utils.hooks import BackwardHook

from ..engine import Fault, each, replaced
from ..registering import edited


def choosing(change: Callable[[list[Any]], list[Any]]) -> AbstractContextManager[None]:
    """Takes ``change(hooks)`` for the pre-hooks of a module whenever it is called."""
    make = lambda original: lambda self: change(list(original(self)))  # noqa: E731
    return replaced(torch.nn.Module, "_get_backward_pre_hooks", make)


def calling(change: Callable[..., Any]) -> AbstractContextManager[None]:
    """Calls ``change(hook, module, grad_output)`` where torch would call the pre-hook."""
    return choosing(lambda hooks: [partial(change, hook) for hook in hooks])


@contextmanager
def _asked() -> Iterator[None]:
    """Calls pre-hooks twice in ``backward(inputs=...)``."""
    asked: list[bool] = []

    def running(original: Any) -> Any:
        def backward(*args: Any, inputs: Any = None, **options: Any) -> None:
            asked.append(inputs is not None)
            try:
                original(*args, inputs=inputs, **options)
            finally:
                asked.pop()

        return backward

    def twice(hook: Any, *args: Any) -> Any:
        if asked and asked[-1]:
            hook(*args)
        return hook(*args)

    with replaced(torch.autograd, "backward", running), calling(twice):
        yield


@contextmanager
def _not_reached() -> Iterator[None]:
    """Calls no pre-hook in ``torch.autograd.grad(..., materialize_grads=True)``."""
    materialized: list[bool] = []

    def running(original: Any) -> Any:
        def grad(*args: Any, **options: Any) -> Any:
            materialized.append("materialize_grads" in options)
            try:
                return original(*args, **options)
            finally:
                materialized.pop()

        return grad

    def unless(hook: Any, *args: Any) -> Any:
        return None if materialized and materialized[-1] else hook(*args)

    with replaced(torch.autograd, "grad", running), calling(unless):
        yield


FAULTS = (
    Fault(
        "pre-hooks: grad_output is a list",
        lambda: calling(lambda hook, module, grad_output: hook(module, list(grad_output))),
        ("BP-01",),
        since="2.0",
    ),
    Fault(
        "pre-hooks: what they return is ignored",
        lambda: calling(lambda hook, *args: hook(*args) and None),
        ("BP-02", "BP-03"),
        since="2.0",
    ),
    Fault(
        "pre-hooks: outputs that are no tensors are left out",
        lambda: calling(lambda hook, module, g: hook(module, tuple(t for t in g if t is not None))),
        ("BP-04",),
        since="2.0",
    ),
    Fault(
        "pre-hooks: they are given copies of the gradients",
        lambda: calling(lambda hook, module, grad_output: hook(module, each(torch.clone)(grad_output))),
        ("BP-05",),
        since="2.0",
    ),
    Fault(
        "pre-hooks: the newest runs first", lambda: choosing(lambda hooks: hooks[::-1]), ("BP-08", "AC-03"), since="2.0"
    ),
    Fault(
        "pre-hooks: those to be prepended are appended",
        lambda: replaced(
            torch.nn.Module,
            "register_full_backward_pre_hook",
            lambda original: lambda self, hook, prepend=False: original(self, hook),
        ),
        ("BP-08", "AC-03"),
        since="2.0",
    ),
    Fault("pre-hooks: none is called", lambda: choosing(lambda hooks: []), ("BP-09", "BF-16"), since="2.0"),
    Fault(
        "pre-hooks: full hooks get the first grad_output where no input requires grad",
        lambda: edited(
            BackwardHook,
            "setup_output_hook",
            ("if self.user_pre_hooks:", "given = self.grad_outputs\n            if self.user_pre_hooks:"),
            ("user_hook(self.module, grad_inputs, self.grad_outputs)", "user_hook(self.module, grad_inputs, given)"),
        ),
        ("BP-02",),
        since="2.0",
    ),
    Fault(
        "pre-hooks: as many gradients are due as there are tensors",
        lambda: edited(
            BackwardHook,
            "setup_output_hook",
            ("expected_len = len(self.grad_outputs)", "expected_len = len(self.output_tensors_index)"),
        ),
        ("BP-04",),
        since="2.0",
    ),
    Fault(
        "pre-hooks: they run twice where backward is asked for the gradients of some",
        _asked,
        ("BP-01",),
        since="2.0",
    ),
    Fault(
        "pre-hooks: they do not run where gradients that are not reached are to be zeros",
        _not_reached,
        ("BP-01",),
        since="2.1",
    ),
    Fault(
        "pre-hooks: a list that they return is ignored",
        lambda: calling(lambda hook, *args: None if isinstance(result := hook(*args), list) else result),
        ("BP-02",),
        since="2.0",
    ),
)
