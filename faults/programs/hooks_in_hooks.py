"""Faults in what hooks register and remove while they are called, and in handles as contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from ..engine import at_the_end_of_backward, replaced
from .situations import CALLS, GRAPH, HANDLE, MODULE, OPTIMIZERS, REGISTRATION, STATE, _fault

EVERYWHERE = (CALLS, STATE, REGISTRATION, GRAPH, OPTIMIZERS)


def _swallowing(original: Any) -> Any:
    """A handle that lets no error out of its context."""
    return lambda self, *error: original(self, *error) or True


def _without_errors(original: Any) -> Any:
    """A handle that removes nothing where an error leaves its context."""
    return lambda self, *error: original(self, *error) if error[0] is None else None


def _not_in_a_backward(original: Any) -> Any:
    return lambda self, *error: None if _in_a_backward() else original(self, *error)


def _in_a_backward() -> bool:
    return torch._C._current_graph_task_id() != -1


@contextmanager
def _noting_hooks(owner: Any, name: str) -> Iterator[list[int]]:
    """The ids of the hooks of one kind that are called at the moment, the innermost last."""
    running: list[int] = []

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
            ids: list[int] = []

            def call(*given: Any) -> Any:
                running.append(ids[0])
                try:
                    return hook(*given)
                finally:
                    running.pop()

            handle = original(self, call, *args, **kwargs)
            ids.append(handle.id)
            return handle

        return register

    with replaced(owner, name, make):
        yield running


@contextmanager
def _removed_by_earlier_ones_alone() -> Iterator[None]:
    """A tensor hook removes none that was registered before it."""
    with _noting_hooks(torch.Tensor, "register_hook") as running:

        def make(original: Any) -> Any:
            return lambda self: None if running and running[-1] > self.id else original(self)

        with replaced(HANDLE, "remove", make):
            yield


@contextmanager
def _never_first_in_hooks() -> Iterator[None]:
    """A forward pre-hook registers no other one before those that are there."""
    name = "register_forward_pre_hook"
    with _noting_hooks(MODULE, name) as running:

        def make(original: Any) -> Any:
            def register(self: Any, hook: Any, *, prepend: bool = False, **kwargs: Any) -> Any:
                return original(self, hook, prepend=prepend and not running, **kwargs)

            return register

        with replaced(MODULE, name, make):
            yield


@contextmanager
def _of_kinds(owner: Any, *names: str) -> Iterator[set[int]]:
    """The ids of the handles that some functions gave, which go with copies of them."""
    ids: set[int] = set()

    def make(original: Any) -> Any:
        def register(*args: Any, **kwargs: Any) -> Any:
            handle = original(*args, **kwargs)
            ids.add(handle.id)
            return handle

        return register

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(replaced(owner, name, make))
        yield ids


@contextmanager
def _removed_as_a_call_is_over() -> Iterator[None]:
    """A forward hook on all modules that is removed in a call goes as that call is over."""
    waiting: list[list[Callable[[], None]]] = []

    def make_call(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            waiting.append([])
            try:
                return original(self, *args, **kwargs)
            finally:
                for remove in waiting.pop():
                    remove()

        return call

    with _of_kinds(torch.nn.modules.module, "register_module_forward_hook") as ids:

        def make_remove(original: Any) -> Any:
            def remove(self: Any) -> None:
                if self.id in ids and waiting:
                    waiting[-1].append(lambda: original(self))
                else:
                    original(self)

            return remove

        with replaced(MODULE, "__call__", make_call), replaced(HANDLE, "remove", make_remove):
            yield


@contextmanager
def _not_of_forwards_in_a_backward() -> Iterator[None]:
    """A hook that a backward calls removes none of those that calls of modules call."""
    with _of_kinds(MODULE, "register_forward_pre_hook", "register_forward_hook") as ids:

        def make(original: Any) -> Any:
            return lambda self: None if self.id in ids and _in_a_backward() else original(self)

        with replaced(HANDLE, "remove", make):
            yield


@contextmanager
def _after_a_backward() -> Iterator[None]:
    """A hook after accumulation that is removed in a backward goes as that is over."""
    with _of_kinds(torch.Tensor, "register_post_accumulate_grad_hook") as ids:

        def make(original: Any) -> Any:
            def remove(self: Any) -> None:
                if self.id in ids and _in_a_backward():
                    at_the_end_of_backward(lambda: original(self))
                else:
                    original(self)

            return remove

        with replaced(HANDLE, "remove", make):
            yield


OF_PARTNERS = (
    _fault("a forward hook that is removed in a call goes as that is over", _removed_as_a_call_is_over, CALLS),
    _fault("a hook in a backward removes none on forwards", _not_of_forwards_in_a_backward, GRAPH),
    _fault("a hook after accumulation that is removed goes after the backward", _after_a_backward, GRAPH),
)
"""Those that only a hook shows which removes one of another table."""

FAULTS = (
    *OF_PARTNERS,
    _fault(
        "a handle that a hook leaves as a context removes nothing",
        lambda: replaced(HANDLE, "__exit__", _not_in_a_backward),
        CALLS,
        GRAPH,
    ),
    _fault(
        "a handle removes its hook as its context is entered",
        lambda: replaced(HANDLE, "__enter__", lambda original: lambda self: self.remove()),
        CALLS,
    ),
    _fault(
        "the context of a handle swallows an error",
        lambda: replaced(HANDLE, "__exit__", _swallowing),
        *EVERYWHERE,
    ),
    _fault(
        "an error in the context of a handle leaves the hook there",
        lambda: replaced(HANDLE, "__exit__", _without_errors),
        *EVERYWHERE,
    ),
    _fault("a tensor hook removes no earlier one", _removed_by_earlier_ones_alone, GRAPH),
    _fault("a forward pre-hook registers none before others", _never_first_in_hooks, CALLS),
)
