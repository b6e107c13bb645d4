"""At which seams can a fault reach hooks of autograd? Where they are registered on tensors and Nodes, and removed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from .engine import added, at_the_end_of_backward, replaced
from .registering import Hook

Change = Callable[[Hook], Hook]
Patch = AbstractContextManager[None]


def on_tensors(change: Change) -> Patch:
    """Registers ``change(hook)`` where a hook is put on a tensor."""
    return replaced(torch.Tensor, "register_hook", lambda original: lambda self, hook: original(self, change(hook)))


def after_accumulation(change: Change) -> Patch:
    """Registers ``change(hook)`` where a post-accumulate hook is put on a tensor."""
    name = "register_post_accumulate_grad_hook"
    return replaced(torch.Tensor, name, lambda original: lambda self, hook: original(self, change(hook)))


class Wrapped:
    """A Node whose hooks are registered in another way."""

    def __init__(self, node: Any, post: Change, pre: Change) -> None:
        self.node, self.post, self.pre = node, post, pre

    def __getattr__(self, name: str) -> Any:
        return getattr(self.node, name)

    @property
    def next_functions(self) -> Any:
        return tuple((n and Wrapped(n, self.post, self.pre), index) for n, index in self.node.next_functions)

    def register_hook(self, hook: Hook) -> Any:
        return self.node.register_hook(self.post(hook))

    def register_prehook(self, hook: Hook) -> Any:
        return self.node.register_prehook(self.pre(hook))


def same(hook: Hook) -> Hook:
    return hook


def on_nodes(post: Change = same, pre: Change = same) -> Patch:
    """Registers ``post(hook)`` and ``pre(hook)`` where a post-hook or pre-hook is put on a Node."""
    grad_fn = torch.Tensor.grad_fn

    def get(self: Any) -> Any:
        node = grad_fn.__get__(self)
        return node and Wrapped(node, post, pre)

    return added(torch.Tensor, "grad_fn", property(get))


def removing(remove: Callable[[Any], None]) -> Patch:
    """Has handles remove in another way."""
    return replaced(RemovableHandle, "remove", lambda original: remove)


def doubled(hook: Hook) -> Hook:
    """The hook, called twice."""

    def call(*args: Any) -> Any:
        hook(*args)
        return hook(*args)

    return call


def ignored(hook: Hook) -> Hook:
    """The hook, with what it returns ignored."""

    def call(*args: Any) -> None:
        hook(*args)

    return call


def late(hook: Hook) -> Hook:
    """The hook, called at the end of backward."""
    return lambda *args: at_the_end_of_backward(lambda: hook(*args))


def copied(hook: Hook) -> Hook:
    """The hook, called with copies of all tensors."""

    def copy(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(copy, value))
        return value.clone() if isinstance(value, torch.Tensor) else value

    return lambda *args: hook(*map(copy, args))


def first(register: Any) -> Any:
    """Puts every new hook before the others."""

    def before(self: Any, hook: Hook) -> Any:
        handle = register(self, hook)
        hooks = handle.hooks_dict_ref()
        others = {key: hooks.pop(key) for key in list(hooks) if key != handle.id}
        hooks.update(others)
        return handle

    return before
