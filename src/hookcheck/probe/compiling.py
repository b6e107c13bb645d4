"""What does torch.compile need around it? A Python that it knows, hooks that it lets alone, a process left clean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

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


@contextmanager
def compiling(topology: Topology) -> Iterator[None]:
    """Where torch.compile is at work, nothing that was compiled is there before, nor afterwards."""
    if not compiles(topology):
        yield
        return
    with optimizers_preserved(), unmeasured():
        _dynamo().reset()
        try:
            yield
        finally:
            _dynamo().reset()


MEASURING = {
    ("guards", "profile_guard_manager"): 0.0,
    ("utils", "_get_dynamo_config_for_logging"): None,
    ("utils", "_scrubbed_inductor_config_for_logging"): None,
}
"""Functions in parts of ``torch._dynamo`` that work for its logs alone, and what they give where they do not. Those
that a torch lacks are left out."""


@contextmanager
def unmeasured() -> Iterator[None]:
    """Has torch.compile not measure how long the guards of a graph take, which it tells its own logs alone. For that it
    empties the caches of the processor, since 2.6, which takes longer than to compile a small graph. Nor does it write
    all of its configuration down for them with each graph, as it does since 2.7."""
    with ExitStack() as stack:
        for (part, name), result in MEASURING.items():
            stack.enter_context(_giving(import_module(f"torch._dynamo.{part}"), name, result))
        yield


@contextmanager
def _giving(owner: Any, name: str, result: float | None) -> Iterator[None]:
    """A function of ``owner``, if there is one of that name, gives ``result`` and does nothing else."""
    function = getattr(owner, name, None)
    if function is not None:
        setattr(owner, name, lambda *_: result)
    try:
        yield
    finally:
        if function is not None:
            setattr(owner, name, function)


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
