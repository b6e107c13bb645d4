"""Faults in what forward hooks, hooks on tensors and backward pre-hooks are told, and what becomes of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any

import torch

from hookcheck.hooks.kinds import BACKWARD_PRE, FORWARD, FORWARD_PRE, KINDS, OUTPUT, POST_ACCUMULATE, TENSOR
from hookcheck.probe.registering import owner

from .engine import Fault, replaced

Hook = Callable[..., Any]


@contextmanager
def registering(change: Callable[[Hook], Hook], *calls: str) -> Iterator[None]:
    """Registers ``change(hook)`` in the place of every hook that is called so."""
    with ExitStack() as stack:
        places = {(owner(k), k.register) for k in KINDS.values() if k.call in calls}
        for place, name in places:
            if hasattr(place, name):
                stack.enter_context(replaced(place, name, lambda original: _registering(original, change)))
        yield


def _registering(original: Any, change: Callable[[Hook], Hook]) -> Any:
    def register(*arguments: Any, **settings: Any) -> Any:
        *owner, hook = arguments
        return original(*owner, change(hook), **settings)

    return register


def giving(change: Callable[..., tuple[Any, ...]]) -> Callable[[Hook], Hook]:
    """Calls the hook with ``change(*arguments)``."""
    return lambda hook: lambda *arguments: hook(*change(*arguments))


def every_second(hook: Hook) -> Hook:
    calls = count()
    return lambda *arguments: hook(*arguments) if next(calls) % 2 else None


def ignored(hook: Hook) -> Hook:
    """The hook's result is not used."""

    def call(*arguments: Any) -> None:
        hook(*arguments)

    return call


def twice(hook: Hook) -> Hook:
    def call(*arguments: Any) -> Any:
        hook(*arguments)
        return hook(*arguments)

    return call


def kinds(*calls: str, acting: bool = False, kwargs: bool | None = None) -> tuple[str, ...]:
    """The hook kinds that are called so."""
    return tuple(
        k.name for k in KINDS.values() if k.call in calls and k.observes is not acting and kwargs in (None, k.kwargs)
    )


FORWARDS = kinds(FORWARD_PRE, FORWARD)
POST = kinds(FORWARD)

FORWARD_CALLS = (
    Fault("a forward hook is called twice", lambda: registering(twice, FORWARD), ("FN-01",), POST, "1.7"),
    Fault(
        "every second call of a forward pre-hook is left out",
        lambda: registering(every_second, FORWARD_PRE),
        ("FN-01",),
        kinds(FORWARD_PRE),
        "1.7",
    ),
    Fault(
        "forward hooks are told the first argument alone",
        lambda: registering(giving(lambda module, args, *rest: (module, args[:1], *rest)), FORWARD_PRE, FORWARD),
        ("FN-02",),
        FORWARDS,
        "1.7",
    ),
    Fault(
        "forward hooks are told another module",
        lambda: registering(giving(lambda module, *rest: (torch.nn.Identity(), *rest)), FORWARD_PRE, FORWARD),
        ("FN-02",),
        kinds(FORWARD_PRE, FORWARD),
        "1.7",
    ),
    Fault(
        "forward hooks are told no keyword argument",
        lambda: registering(
            giving(lambda module, args, kwargs, *rest: (module, args, {}, *rest)), FORWARD_PRE, FORWARD
        ),
        ("FN-03",),
        kinds(FORWARD_PRE, FORWARD, kwargs=True),
        "2.0",
    ),
    Fault(
        "a forward hook is told the output in a tuple",
        lambda: registering(giving(lambda *given: (*given[:-1], (given[-1],))), FORWARD),
        ("FN-04",),
        POST,
        "1.7",
    ),
    Fault(
        "a forward pre-hook's result is not used",
        lambda: registering(ignored, FORWARD_PRE),
        ("AG-02",),
        kinds(FORWARD_PRE, acting=True),
        "1.7",
    ),
    Fault(
        "a forward hook's result is not used",
        lambda: registering(ignored, FORWARD),
        ("AG-02", "AG-01"),
        kinds(FORWARD, acting=True),
        "1.7",
    ),
    Fault(
        "a backward pre-hook's result is not used",
        lambda: registering(ignored, BACKWARD_PRE),
        ("AG-01",),
        kinds(BACKWARD_PRE, acting=True),
        "2.0",
    ),
    Fault(
        "every second call of a backward pre-hook is left out",
        lambda: registering(every_second, BACKWARD_PRE),
        ("BN-01",),
        kinds(BACKWARD_PRE),
        "2.0",
    ),
    Fault(
        "a backward pre-hook is told a list",
        lambda: registering(giving(lambda module, gradients: (module, [*gradients])), BACKWARD_PRE),
        ("BN-02",),
        kinds(BACKWARD_PRE),
        "2.0",
    ),
    Fault(
        "a backward pre-hook is told twice the gradients",
        lambda: registering(
            giving(lambda module, gradients: (module, tuple(g if g is None else 2 * g for g in gradients))),
            BACKWARD_PRE,
        ),
        ("GO-01",),
        kinds(BACKWARD_PRE),
        "2.0",
    ),
    Fault(
        "a hook on a tensor is told twice the gradient",
        lambda: registering(giving(lambda gradient: (gradient if gradient is None else 2 * gradient,)), TENSOR, OUTPUT),
        ("TN-01", "TN-03"),
        kinds(TENSOR, OUTPUT),
        "1.7",
    ),
    Fault(
        "a post-accumulate-grad hook is called twice",
        lambda: registering(twice, POST_ACCUMULATE),
        ("TN-02",),
        kinds(POST_ACCUMULATE),
        "2.1",
    ),
)
