"""What does torch.compile need around it? A Python that it knows, hooks that it lets alone, a process left clean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from traceback import StackSummary
from typing import Any
from unittest.mock import patch

from hookcheck.probe.lazy import torch
from hookcheck.topology.contexts import COMPILING
from hookcheck.topology.model import Topology, inside, worked_out_once

Mark = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Gives a function that does the same."""


def unmarked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return function


@worked_out_once
def compiles(topology: Topology) -> bool:
    """Whether torch.compile is at work in the network."""
    return not set(COMPILING).isdisjoint(inside(topology))


def supported() -> bool:
    """Whether this torch, which has torch.compile, compiles on this Python."""
    answer: bool = _dynamo().is_dynamo_supported()
    return answer


def marking(topology: Topology) -> Mark:
    """What hooks are marked with: those that record what they are given are not for torch.compile to trace."""
    if not compiles(topology):
        return unmarked
    disable: Mark = torch.compiler.disable
    return disable


def said_once() -> Container[str]:
    """What dynamo warned of so far in this process, of which it warns no more."""
    return getattr(sys.modules.get("torch._dynamo.utils"), "warn_once_cache", ())


@contextmanager
def compiling(topology: Topology) -> Iterator[None]:
    """Where torch.compile is at work, nothing that was compiled is there before, nor afterwards.

    A checkpoint imports torch._dynamo, whose modules compute with numbers as they are imported. Where the default
    device is meta that raises (seen on 2.6 and 2.7), so that it is imported before."""
    if "meta_device" in inside(topology):
        _dynamo()
    if not compiles(topology):
        yield
        return
    with optimizers_preserved(), unlogged():
        _forget()
        try:
            yield
        finally:
            _forget()


def _forget() -> None:
    """Has torch.compile forget what it compiled.

    Up to 2.3 it also remembers, as long as the process lives, which classes of modules had hooks of their own: it goes
    into a call of such a module, and puts others into the graph as a whole. What a network showed depended on what was
    compiled before it; so all classes of torch are taken for such from the beginning.
    """
    _dynamo().reset()
    tracker = import_module("torch._dynamo.mutation_guard").GenerationTracker
    if not hasattr(tracker, "clear"):  # since 2.4 a reset calls it
        for layer in _subclasses(torch.nn.Module):
            tracker.mark_class_dynamic(layer)


def _subclasses(of: type[Any]) -> Iterator[type[Any]]:
    """All classes that are derived from one, and from those."""
    each: type[Any]
    for each in of.__subclasses__():
        yield each
        yield from _subclasses(each)


FOR_LOGS = (
    ("torch._dynamo.guards", "profile_guard_manager", 0.0),
    ("torch._dynamo.symbolic_convert", "get_stack_above_dynamo", StackSummary()),
    ("torch._dynamo.utils", "_get_dynamo_config_for_logging", None),
    ("torch._dynamo.utils", "_scrubbed_inductor_config_for_logging", None),
)
"""What torch.compile asks for its own logs alone, and what it is answered here: how long the guards of a graph take
(for that it empties the caches of the processor, since 2.6, which takes longer than to compile a small graph), where in
the program a graph breaks (since 2.7), how it is configured (since 2.6)."""


@contextmanager
def unlogged() -> Iterator[None]:
    """Has torch.compile work out nothing for its logs (`FOR_LOGS`): about a fifth of its time on small networks."""
    with ExitStack() as patches:
        for module, name, answer in FOR_LOGS:
            if hasattr(import_module(module), name):
                patches.enter_context(patch(f"{module}.{name}", lambda *_, answer=answer: answer))
        yield


@contextmanager
def optimizers_preserved() -> Iterator[None]:
    """Puts back the ``step`` of each class of optimizers. The first thing that torch.compile or torch.export does in a
    process, up to 2.2, is to take the hooks off all of them, for as long as the process lives."""
    classes: list[Any] = [c for c in vars(torch.optim).values() if isinstance(c, type) and "step" in vars(c)]
    before = [(c, vars(c)["step"], getattr(c.step, "hooked", False)) for c in classes]
    try:
        yield
    finally:
        for owner, step, hooked in before:
            owner.step = step
            if hasattr(step, "hooked") and not hooked:
                del step.hooked


def _dynamo() -> Any:
    return import_module("torch._dynamo")
