"""Faults that a change between forward and backward alone shows, or a backward that must raise because of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..engine import fetched, replaced
from .interactions import _called_plainly
from .situations import CALLS, GRAPH, MODULE, _fault, _tensor, _unless


@contextmanager
def _silent_once(name: str) -> Iterator[None]:
    """Full hooks of a call are silent once a net was changed after it by the method of that name."""
    times = [0]

    def make(original: Any) -> Any:
        def method(self: Any, *args: Any) -> Any:
            times[0] += 1
            return original(self, *args)

        return method

    def of_now(module: Any, hooks: list[Any]) -> list[Any]:
        now = times[0]
        return [lambda *given, hook=hook: hook(*given) if times[0] == now else None for hook in hooks]

    with replaced(MODULE, name, make), fetched(of_now):
        yield


def _frozen(module: Any) -> bool:
    return any(not parameter.requires_grad for parameter in module.parameters())


def _unhooked(original: Any) -> Any:
    """An operation that writes to a result and takes its hooks away."""

    def write(self: Any, other: Any) -> Any:
        (self._backward_hooks or {}).clear()
        return original(self, other)

    return write


def _unchecked(original: Any) -> Any:
    """A backward that says nothing where it needs what was written to."""

    def backward(self: Any, *args: Any, **options: Any) -> None:
        try:
            original(self, *args, **options)
        except RuntimeError as error:
            if "modified by an inplace operation" not in str(error):
                raise

    return backward


FAULTS = (
    _fault("full hooks are silent once a net was frozen after the call", lambda: _silent_once("requires_grad_"), CALLS),
    _fault("full hooks are silent once a net was cast after the call", lambda: _silent_once("double"), CALLS),
    _fault("full hooks are silent once a net was moved after the call", lambda: _silent_once("to"), CALLS),
    _fault("a net that is frozen loses hooks", lambda: _called_plainly(_frozen), CALLS),
    _fault(
        "a hook on a parameter is silent while that is frozen",
        lambda: _tensor(_unless(lambda t: not t.requires_grad)),
        GRAPH,
    ),
    _fault("what is written to loses its hooks", lambda: replaced(torch.Tensor, "mul_", _unhooked), GRAPH),
    _fault(
        "a backward says nothing of what was written to", lambda: replaced(torch.Tensor, "backward", _unchecked), GRAPH
    ),
)
