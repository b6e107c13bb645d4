"""At which seams of torch's own Python code can a fault be put in? Patches in memory, undone on leaving."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from hookcheck.hooks.kinds import BACKWARD, KINDS

Gradients = tuple[Any, ...]
FULL, LEGACY, ALL = (
    tuple(name for name, kind in KINDS.items() if kind.call == BACKWARD and kind.observes and kind.variant in variants)
    for variants in (("full",), ("legacy",), ("full", "legacy"))
)


@dataclass(frozen=True)
class Fault:
    """A hook engine that is wrong in one way.

    ``what`` says in which. ``patch`` makes it so while its context is open. ``kinds`` are the hook kinds that it
    concerns: it must show on each of them. ``clauses`` are those that must catch it on some kind. ``since`` is the
    first torch on which it can show, and ``hosts`` are those on each of which it shows there.
    """

    what: str
    patch: Callable[[], AbstractContextManager[None]]
    clauses: tuple[str, ...]
    kinds: tuple[str, ...] = FULL
    since: str = "1.8"
    hosts: tuple[str, ...] = ()

    @property
    def offered(self) -> bool:
        """Whether the installed torch has the code that the fault is put into."""
        return release(torch.__version__) >= release(self.since)


def named(fault: Fault) -> str:
    """The name of a test of the fault, with its clauses: pytest's ``-k`` finds it by them as well."""
    return f"{fault.what}: {' '.join(fault.clauses)}"


def release(version: str) -> tuple[int, int]:
    """Major and minor number."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


@contextmanager
def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Puts ``make(original)`` in the place of an attribute, which may be an inherited one."""
    original, attributes = getattr(owner, name), {**vars(owner)}
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        if name in attributes:
            setattr(owner, name, attributes[name])
        else:
            delattr(owner, name)


def engine(name: str, make: Callable[[Any], Any]) -> AbstractContextManager[None]:
    """Replaces a method of ``torch.utils.hooks.BackwardHook``."""
    return replaced(torch.utils.hooks.BackwardHook, name, make)


def boundary(name: str, make: Callable[[Any], Any]) -> AbstractContextManager[None]:
    """Replaces a static method of ``BackwardHookFunction``, the identity that full hooks put around a module."""
    from torch.nn.modules import _functions

    return replaced(_functions.BackwardHookFunction, name, lambda original: staticmethod(make(original)))


def calling(change: Callable[..., Any]) -> AbstractContextManager[None]:
    """Calls ``change(hook, module, grad_input, grad_output)`` where torch would call the hook."""
    return fetched(lambda module, hooks: [partial(change, hook) for hook in hooks])


def fetched(change: Callable[[Any, list[Any]], list[Any]]) -> AbstractContextManager[None]:
    """Takes ``change(module, hooks)`` for the hooks of a module whenever it is called."""

    def make(original: Any) -> Any:
        def get(self: Any) -> tuple[list[Any], list[Any]]:
            full, legacy = original(self)
            return change(self, full) if full else full, change(self, legacy) if legacy else legacy

        return get

    return replaced(torch.nn.Module, "_get_backward_hooks", make)


def receiving(
    grad_input: Callable[[Gradients], Any] = lambda g: g, grad_output: Callable[[Gradients], Any] = lambda g: g
) -> AbstractContextManager[None]:
    """Hands hooks something else than their gradients."""
    return calling(lambda hook, module, gi, go: hook(module, grad_input(gi), grad_output(go)))


def called(change: Callable[..., Any]) -> AbstractContextManager[None]:
    """Gives ``change(forward, module, args)`` where torch would call a module that has hooks.

    ``forward(*args)`` is the call as torch makes it; keyword arguments are in it already.
    """

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            forward = partial(original, self, **kwargs)
            return change(forward, self, args) if hooks_of(self) else forward(*args)

        return call

    return replaced(torch.nn.Module, "__call__", make)


@contextmanager
def knowing(change: Callable[..., Any]) -> Iterator[None]:
    """Calls ``change(args, kwargs, hook, module, grad_input, grad_output)``: with what the module was called with."""
    given: list[tuple[Any, Any]] = []

    def call(forward: Any, module: Any, args: Any) -> Any:
        given.append((args, forward.keywords))
        return forward(*args)

    with called(call), fetched(lambda module, hooks: [partial(change, *given[-1], hook) for hook in hooks]):
        yield


@contextmanager
def added(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Gives a class an attribute that is not its own: it has none of that name, or inherits one."""
    assert name not in vars(owner)
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name)


def remembered(get: Callable[[Any], Any], put: Callable[[Any, Any], None]) -> AbstractContextManager[None]:
    """Keeps the gradients of outputs, which ``BackwardHook`` holds until the input's come, in another way."""
    return added(torch.utils.hooks.BackwardHook, "grad_outputs", property(get, put))


def hooks_of(module: Any) -> list[Any]:
    """Every backward hook that is to be called for ``module``."""
    return [*torch_module._global_backward_hooks.values(), *module._backward_hooks.values()]


def each(change: Callable[[Any], Any]) -> Callable[[Gradients], Gradients]:
    """Changes every gradient that is one."""
    return lambda gradients: tuple(None if g is None else change(g) for g in gradients)


def tensors(result: Any) -> list[Any]:
    """The tensors of what a module gives."""
    return [t for t in (result if isinstance(result, tuple) else (result,)) if isinstance(t, torch.Tensor)]


def on_outputs(change: Callable[[Any], Any]) -> AbstractContextManager[None]:
    """Changes every tensor that a module with hooks gives."""

    def call(forward: Any, module: Any, args: Any) -> Any:
        result = forward(*args)
        if isinstance(result, tuple):
            items = [change(t) if isinstance(t, torch.Tensor) else t for t in result]
            return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
        return change(result) if isinstance(result, torch.Tensor) else result

    return called(call)


def at_the_end_of_backward(act: Callable[[], Any]) -> None:
    """Has autograd call ``act`` when the backward that is running is done."""
    torch.autograd.Variable._execution_engine.queue_callback(act)
