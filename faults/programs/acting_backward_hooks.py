"""Faults in what becomes of the gradients that backward hooks return."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..engine import Fault, calling, each, fetched
from . import full_backward_pre_hooks as pre


def apart(hooks: list[Any]) -> list[Any]:
    """One hook for all, each of which is given the gradients as they came; the last result counts."""

    def run(*args: Any) -> Any:
        results = [hook(*args) for hook in hooks]
        return next((result for result in reversed(results) if result is not None), None)

    return [run]


@contextmanager
def before_pre_hooks() -> Iterator[None]:
    """Full hooks are given the grad_output that came before any pre-hook."""
    came: list[Any] = []

    def note(hook: Any, module: Any, grad_output: Any) -> Any:
        came.append(grad_output)
        return hook(module, grad_output)

    with pre.calling(note), calling(lambda hook, module, grad_input, grad_output: hook(module, grad_input, came[0])):
        yield


def once() -> AbstractContextManager[None]:
    """What a hook returned first is used ever after."""
    results: dict[int, Any] = {}

    def run(hook: Any, module: Any, *args: Any) -> Any:
        result = hook(module, *args)
        return results.setdefault(id(module), result)

    return calling(run)


def added(hook: Any, module: Any, grad_input: Any, grad_output: Any) -> Any:
    """What a hook returns is added to what was there."""
    result = hook(module, grad_input, grad_output)
    return None if result is None else tuple(new + old for new, old in zip(result, grad_input))


def detached(hook: Any, *args: Any) -> Any:
    """What a hook returns is no part of a graph."""
    result = hook(*args)
    return None if result is None else each(lambda gradient: gradient.detach())(result)


def unless_container(hook: Any, module: Any, *args: Any) -> Any:
    """What a hook of a module with children returns is ignored."""
    result = hook(module, *args)
    return None if list(module.children()) else result


def first_module_alone() -> AbstractContextManager[None]:
    """Hooks are called for the module that was called first."""
    modules: list[Any] = []

    def choose(module: Any, hooks: list[Any]) -> list[Any]:
        modules.append(module)
        return hooks if module is modules[0] else []

    return fetched(choose)


def _not_again() -> AbstractContextManager[None]:
    """Leaves out a hook that has raised."""
    failed: list[Any] = []

    def run(hook: Any, *args: Any) -> Any:
        if hook in failed:
            return None
        try:
            return hook(*args)
        except Exception:
            failed.append(hook)
            raise

    return calling(run)


def _detached(hook: Any) -> Any:
    """The hook, given gradients without their graph."""
    return lambda module, *gradients: hook(module, *(each(lambda g: g.detach())(of) for of in gradients))


FAULTS = (
    Fault(
        "results of full hooks: they do not reach the next hook",
        lambda: fetched(lambda module, hooks: apart(hooks)),
        ("AC-01", "AC-02"),
        since="2.0",
    ),
    Fault(
        "results of pre-hooks: they do not reach the next hook", lambda: pre.choosing(apart), ("AC-03",), since="2.0"
    ),
    Fault("results of pre-hooks: they do not reach full hooks", before_pre_hooks, ("AC-04",), since="2.0"),
    Fault(
        "results of full hooks: those of containers are ignored",
        lambda: calling(unless_container),
        ("AC-05",),
    ),
    Fault(
        "results of pre-hooks: those of containers are ignored",
        lambda: pre.calling(unless_container),
        ("AC-06",),
        since="2.0",
    ),
    Fault("results of full hooks: the first is used ever after", once, ("AC-08",)),
    Fault("results of full hooks: they are added", lambda: calling(added), ("AC-09", "BW-06")),
    Fault("results of full hooks: they are detached", lambda: calling(detached), ("AC-10",)),
    Fault("global full hooks: they are called for one module", first_module_alone, ("AC-12",)),
    Fault("acting: a hook that raised is not called again", _not_again, ("AC-08",)),
    Fault(
        "acting: hooks but the first are given gradients that cannot be derived",
        lambda: fetched(lambda module, hooks: [*hooks[:1], *map(_detached, hooks[1:])]),
        ("AC-10",),
    ),
)
