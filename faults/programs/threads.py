"""Faults in how hooks of several threads are kept apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from ..engine import Fault, remembered, replaced
from .saved_tensors_hooks import crossing, unset


def of_its_thread(owner: Any, name: str) -> AbstractContextManager[None]:
    """A hook that is registered with ``name`` is called in the thread alone that registered it."""

    def guarded(hook: Any) -> Any:
        thread = threading.get_ident()
        return lambda *args: hook(*args) if threading.get_ident() == thread else None

    return replaced(
        owner,
        name,
        lambda original: lambda *args, **kwargs: original(*args[:-1], guarded(args[-1]), **kwargs),
    )


def one_for_all() -> AbstractContextManager[None]:
    """The gradients of outputs are kept in one place for all calls of all modules."""
    place: dict[str, Any] = {}
    return remembered(lambda self: place.get("gradients"), lambda self, value: place.update(gradients=value))


@contextmanager
def starting(act: Any) -> Iterator[None]:
    """Calls ``act()`` first in every thread."""
    with replaced(threading.Thread, "run", lambda original: lambda self: (act(), original(self))[1]):
        yield


@contextmanager
def one_grad_mode() -> Iterator[None]:
    """A thread starts with the grad mode of the one that starts it."""
    mode: dict[str, bool] = {}

    def make(original: Any) -> Any:
        return lambda self: (mode.update(on=torch.is_grad_enabled()), original(self))[1]

    with replaced(threading.Thread, "start", make), starting(lambda: torch.set_grad_enabled(mode["on"])):
        yield


@contextmanager
def hooks_for_all() -> Iterator[None]:
    """Contexts of hooks for saved tensors hold in the threads too that are started inside."""
    entered: list[Any] = []

    def enter(original: Any) -> Any:
        return lambda self: (entered.append(self), original(self))[1]

    def leave(original: Any) -> Any:
        return lambda self, *error: (entered.pop(), original(self, *error))[1]

    def push() -> None:
        for context in entered:
            torch._C._autograd._push_saved_tensors_default_hooks(context.pack_hook, context.unpack_hook)

    with crossing(enter, leave), starting(push):
        yield


def elsewhere() -> AbstractContextManager[None]:
    """Backward runs in a thread of its own."""

    def make(original: Any) -> Any:
        def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(original, self, *args, **kwargs).result()

        return backward

    return replaced(torch.Tensor, "backward", make)


FAULTS = (
    Fault("threads: gradients of outputs are kept in one place", one_for_all, ("TD-01",)),
    *(
        Fault(f"threads: hooks of {name} belong to a thread", lambda o=owner, n=name: of_its_thread(o, n), clauses)
        for owner, name, clauses in (
            (torch.nn.Module, "register_full_backward_hook", ("TD-01", "TD-06")),
            (torch.nn.Module, "register_full_backward_pre_hook", ("TD-02",)),
            (torch.nn.Module, "register_forward_hook", ("TD-05", "TD-06")),
            (torch.Tensor, "register_hook", ("TD-03",)),
            (torch.autograd.graph, "register_multi_grad_hook", ("TD-04",)),
            (torch_module, "register_module_forward_hook", ("TD-07",)),
        )
    ),
    Fault("threads: grad mode is handed on", one_grad_mode, ("TD-06",)),
    Fault("threads: backward runs in a thread of its own", elsewhere, ("TD-08",)),
    Fault("threads: hooks for saved tensors are handed on", hooks_for_all, ("ST-14",)),
    Fault("threads: hooks for saved tensors are not set", unset, ("TD-09",)),
)
