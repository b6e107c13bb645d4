"""Faults in how hooks on the creation of Nodes and callbacks at the end of backward are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch.autograd import graph

from ..autograd import Hook, Patch
from ..engine import Fault, replaced
from ..registering import dropped, every_second

MADE, QUEUED = "2.14", "2.15"


def _changing(change: Callable[[Hook], Hook]) -> Patch:
    """Registers ``change(hook)`` where a hook is to be called for every Node."""

    def make(original: Any) -> Any:
        def init(self: Any, hook: Hook) -> None:
            original(self, change(hook))

        return init

    return replaced(graph.node_creation_hook, "__init__", make)


def _but(passed_over: Callable[[Any], bool]) -> Callable[[Hook], Hook]:
    return lambda hook: lambda node: None if passed_over(node) else hook(node)


def _tolerant(hook: Hook) -> Hook:
    def call(node: Any) -> None:
        with suppress(RuntimeError):
            hook(node)

    return call


class Bare:
    """A Node that has not been told of its surroundings yet."""

    next_functions, _input_metadata, metadata = (), (), {}

    def __init__(self, node: Any) -> None:
        self.name = node.name

    def register_prehook(self, hook: Hook) -> None:
        """Registers nothing."""


@contextmanager
def _innermost_alone() -> Iterator[None]:
    entered: list[Any] = []

    def enter(original: Any) -> Any:
        def push(self: Any) -> None:
            entered.append(self)
            hook = self.hook
            self.hook = lambda node: hook(node) if entered[-1] is self else None
            original(self)

        return push

    def leave(original: Any) -> Any:
        def pop(self: Any, *args: Any) -> None:
            entered.pop()
            original(self, *args)

        return pop

    with replaced(graph.node_creation_hook, "__enter__", enter), replaced(graph.node_creation_hook, "__exit__", leave):
        yield


def _queued(change: Any) -> Patch:
    return replaced(graph, "queue_callback", change)


def _queued_once() -> Patch:
    queued: list[Any] = []

    def make(original: Any) -> Any:
        def queue(callback: Any) -> None:
            if callback not in queued:
                queued.append(callback)
                original(callback)

        return queue

    return _queued(make)


FAULTS = (
    Fault(
        "node_creation_hook: called every second time", lambda: _changing(every_second), ("NC-01", "NC-04"), since=MADE
    ),
    Fault(
        "node_creation_hook: dropped",
        lambda: _changing(dropped),
        ("NC-01", "NC-02", "NC-03", "NC-05", "NC-06"),
        since=MADE,
    ),
    Fault(
        "node_creation_hook: called before the Node is complete",
        lambda: _changing(lambda hook: lambda node: hook(Bare(node))),
        ("NC-01", "NC-02"),
        since=MADE,
    ),
    Fault(
        "node_creation_hook: not called in backward",
        lambda: _changing(_but(lambda node: torch._C._current_graph_task_id() != -1)),
        ("NC-03",),
        since=MADE,
    ),
    Fault(
        "node_creation_hook: not called for leaves",
        lambda: _changing(_but(lambda node: type(node).__name__ == "AccumulateGrad")),
        ("NC-01", "NC-06"),
        since=MADE,
    ),
    Fault("node_creation_hook: only the innermost is called", _innermost_alone, ("NC-04",), since=MADE),
    Fault("node_creation_hook: errors in the hook are swallowed", lambda: _changing(_tolerant), ("NC-05",), since=MADE),
    Fault(
        "queue_callback: runs at once",
        lambda: _queued(lambda original: lambda callback: callback()),
        ("NC-07", "NC-08"),
        since=QUEUED,
    ),
    Fault("queue_callback: runs once however often it is queued", _queued_once, ("NC-07",), since=QUEUED),
    Fault(
        "queue_callback: is forgotten",
        lambda: _queued(lambda original: lambda callback: None),
        ("NC-07", "NC-08"),
        since=QUEUED,
    ),
)
