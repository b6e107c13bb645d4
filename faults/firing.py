"""Faults in when, how often and in what order hooks are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import count
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from hookcheck.hooks.kinds import KINDS

from .engine import (
    ALL,
    FULL,
    Fault,
    Gradients,
    at_the_end_of_backward,
    called,
    calling,
    engine,
    fetched,
    hooks_of,
    replaced,
    tensors,
)

GLOBAL = tuple(name for name in ALL if KINDS[name].scope == "global")


def every_second() -> AbstractContextManager[None]:
    calls = count()
    return calling(lambda hook, *arguments: hook(*arguments) if next(calls) % 2 else None)


def twice() -> AbstractContextManager[None]:
    def change(hook: Any, *arguments: Any) -> Any:
        hook(*arguments)
        return hook(*arguments)

    return calling(change)


def only_for(wanted: Callable[[Any], bool]) -> AbstractContextManager[None]:
    return fetched(lambda module, hooks: hooks if wanted(module) else [])


def on_the_first_forward() -> AbstractContextManager[None]:
    """A module remembers that it was called."""

    def change(module: Any, hooks: list[Any]) -> list[Any]:
        first = "was_called" not in vars(module)
        vars(module)["was_called"] = True
        return hooks if first else []

    return fetched(change)


def on_the_first_backward() -> AbstractContextManager[None]:
    """What one forward has set up is used up by one backward."""

    def change(module: Any, hooks: list[Any]) -> list[Any]:
        def once(hook: Any, used: list[Any], *arguments: Any) -> Any:
            used.append(hook)
            return hook(*arguments) if len(used) == 1 else None

        return [partial(once, hook, []) for hook in hooks]

    return fetched(change)


def on_the_root_alone() -> AbstractContextManager[None]:
    depth: list[Any] = []

    def call(forward: Any, module: Any, args: Any) -> Any:
        depth.append(module)
        try:
            return forward(*args)
        finally:
            depth.pop()

    @contextmanager
    def patch() -> Iterator[None]:
        with called(call), fetched(lambda module, hooks: hooks if len(depth) == 1 else []):
            yield

    return patch()


def without_early() -> AbstractContextManager[None]:
    def change(hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
        return None if all(g is None for g in gi) else hook(module, gi, go)

    return calling(change)


def by_the_first_input() -> AbstractContextManager[None]:
    """Whether the first input requires grad decides for all of them."""

    def make(original: Any) -> Any:
        def setup(self: Any, args: Any) -> Any:
            if not args or not getattr(args[0], "requires_grad", False):
                self.user_hooks = []
            return original(self, args)

        return setup

    return engine("setup_input_hook", make)


def without_input_side() -> AbstractContextManager[None]:
    """Inputs are never looked at, so every hook fires on its outputs."""

    def make(original: Any) -> Any:
        def setup(self: Any, args: Any) -> Any:
            self.n_inputs = len(args)
            return args

        return setup

    return engine("setup_input_hook", make)


def at_once(when: Callable[[Any], bool]) -> AbstractContextManager[None]:
    """Hooks are called in forward, where ``when`` says so of the result."""

    def call(forward: Any, module: Any, args: Any) -> Any:
        result = forward(*args)
        if when(result):
            for hook in hooks_of(module):
                hook(module, (None,) * len(args), (None,) * len(tensors(result)))
        return result

    return called(call)


def without_gradient(result: Any) -> bool:
    return torch.is_grad_enabled() and not any(t.requires_grad for t in tensors(result))


def without_grad_mode(result: Any) -> bool:
    return not torch.is_grad_enabled()


def with_gradient(result: Any) -> bool:
    return any(t.requires_grad for t in tensors(result))


def deferred(
    order: Callable[[list[Any]], list[Any]], late: Callable[[Gradients], bool]
) -> AbstractContextManager[None]:
    """Hook calls whose grad_input is ``late`` are held back to the end of the backward, and made in another order."""
    held: list[Any] = []

    def flush() -> None:
        for hook, arguments in order(held):
            hook(*arguments)
        held.clear()

    def change(hook: Any, module: Any, gi: Gradients, go: Gradients) -> None:
        if not late(gi):
            hook(module, gi, go)
            return
        if not held:
            at_the_end_of_backward(flush)
        held.append((hook, (module, gi, go)))

    return calling(change)


def containers_first(held: list[Any]) -> list[Any]:
    return sorted(held, key=lambda item: not list(item[1][0].children()))


def forgetting() -> AbstractContextManager[None]:
    """Registering gives a handle and does nothing."""
    return registering(lambda original: lambda *arguments: None)


def registered_twice() -> AbstractContextManager[None]:
    def make(original: Any) -> Any:
        def register(*arguments: Any) -> Any:
            original(*arguments)
            return original(*arguments)

        return register

    return registering(make)


@contextmanager
def registering(make: Callable[[Any], Any]) -> Iterator[None]:
    """Replaces every function that registers a backward hook."""
    with ExitStack() as stack:
        for kind in map(KINDS.__getitem__, ALL):
            owner = torch.nn.Module if kind.scope == "module" else torch_module
            stack.enter_context(replaced(owner, kind.register, make))
        yield


def is_leaf(module: Any) -> bool:
    return not list(module.children())


def always(gradients: Gradients) -> bool:
    return True


def no_gradient(gradients: Gradients) -> bool:
    return all(g is None for g in gradients)


FIRING = (
    Fault("every second call of a hook is left out", every_second, ("BW-02", "P2-11"), ALL),
    Fault("hooks are called twice", twice, ("BW-05", "P2-11"), ALL),
    Fault("a hook is registered twice", registered_twice, ("BW-05", "P2-11"), ALL),
    Fault("registering a hook does nothing", forgetting, ("BW-02", "P2-11"), ALL),
    Fault("containers are skipped", lambda: only_for(is_leaf), ("BW-02",), ALL),
    Fault("leaf modules are skipped", lambda: only_for(lambda module: not is_leaf(module)), ("BW-02",), ALL),
    Fault("only the module that main calls has hooks", on_the_root_alone, ("BW-02",), ALL),
    Fault("hooks are skipped in eval mode", lambda: only_for(lambda module: module.training), ("BW-02",), ALL),
    Fault("hooks are called for the first forward only", on_the_first_forward, ("BW-02", "BW-05"), ALL),
    Fault("hooks are called in the first backward only", on_the_first_backward, ("BW-02", "BW-05"), ALL),
    Fault("hooks are skipped where no input requires grad", without_early, ("BW-03",), FULL, "1.9"),
    Fault(
        "hooks are skipped where the first input requires no grad", by_the_first_input, ("BW-02", "BW-03"), FULL, "1.9"
    ),
    Fault("hooks fire on outputs though inputs require grad", without_input_side, ("GI-02", "OR-01"), FULL, "1.9"),
    Fault("hooks are called in forward too", lambda: at_once(with_gradient), ("BW-05",), ALL),
    Fault("hooks are called where no output requires grad", lambda: at_once(without_gradient), ("BW-04",), ALL),
    Fault("hooks are called under no_grad", lambda: at_once(without_grad_mode), ("NG-01", "BW-04"), ALL),
    Fault("hooks are called late and in reverse", lambda: deferred(lambda held: held[::-1], always), ("OR-01",), ALL),
    Fault("containers are told before their children", lambda: deferred(containers_first, always), ("OR-01",)),
    Fault(
        "hooks without grad_input are called last",
        lambda: deferred(lambda held: held, no_gradient),
        ("OR-01",),
        FULL,
        "1.9",
    ),
)
