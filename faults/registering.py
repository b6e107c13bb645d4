"""At which seams can a fault reach hooks of every kind? Where they are registered, and in the text of torch's code."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from textwrap import dedent
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from .engine import replaced

Hook = Callable[..., Any]


def local(kind: str, change: Callable[[Hook], Hook]) -> AbstractContextManager[None]:
    """Registers ``change(hook)`` where a hook of that kind is put on a module."""

    def make(original: Any) -> Any:
        return lambda self, hook, *args, **kwargs: original(self, change(hook), *args, **kwargs)

    return replaced(torch.nn.Module, f"register_{kind}", make)


def everywhere(kind: str, change: Callable[[Hook], Hook]) -> AbstractContextManager[None]:
    """Registers ``change(hook)`` where a hook of that kind is put on all modules."""

    def make(original: Any) -> Any:
        return lambda hook, *args, **kwargs: original(change(hook), *args, **kwargs)

    return replaced(torch_module, f"register_module_{kind}", make)


def deaf(owner: Any, name: str, **options: Any) -> AbstractContextManager[None]:
    """Registers hooks with these options whatever was asked for."""

    def make(original: Any) -> Any:
        return lambda *args, **kwargs: original(*args, **{**kwargs, **options})

    return replaced(owner, name, make)


def every_second(hook: Hook) -> Hook:
    """The hook, called every second time."""
    calls: list[None] = []

    def skipping(*arguments: Any) -> Any:
        calls.append(None)
        return hook(*arguments) if len(calls) % 2 else None

    return skipping


def silenced(hook: Hook) -> Hook:
    """The hook, with what it returns ignored."""
    return lambda *arguments: hook(*arguments) and None


def dropped(hook: Hook) -> Hook:
    """A hook that does nothing."""
    return lambda *arguments: None


@contextmanager
def edited(owner: Any, name: str, *changes: tuple[str, str]) -> Iterator[None]:
    """Replaces pieces of the text of a function, each of which must be there."""
    original = getattr(owner, name)
    source = dedent(inspect.getsource(original))
    for old, new in changes:
        assert old in source, f"{name} has no {old!r}"
        source = source.replace(old, new)
    scope: dict[str, Any] = {}
    exec(source, vars(sys.modules[original.__module__]), scope)
    with replaced(owner, name, lambda original: scope[original.__name__]):
        yield


def call(*changes: tuple[str, str]) -> AbstractContextManager[None]:
    """Edits the function that calls a module with its hooks."""
    return edited(torch.nn.Module, "_call_impl", *changes)
