"""Hooks that are there after some code and were not before, and where each was registered."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookcheck.models.tables import TableHook, function_name, global_hooks, hooks_of, saved_tensors_pair
from hookcheck.probe.lazy import nn, torch

UNKNOWN = "an unknown place (past torch's functions, or outside of the guard)"


@dataclass(frozen=True)
class Leftover:
    """A hook that was left: its kind, its function, on what, and where it was registered (``file:line``)."""

    kind: str
    function: str
    on: str
    place: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.kind} hook {self.function} on {self.on}, registered at {self.place}"


@contextmanager
def watched() -> Iterator[Callable[[], tuple[Leftover, ...]]]:
    """While it is open, registrations are traced; what it gives tells the hooks that are new since it opened.

    Only objects that are still alive count: a model that is gone has taken its hooks with it. Hooks that were written
    into torch's private tables are seen too, their place is not known. Hooks on Nodes of a graph are in no table and
    die with the graph: they are not looked for.
    """
    before, known = _census(), {(where, hook.table, hook.key) for where, hook in global_hooks()}
    pair = saved_tensors_pair()
    places: dict[Any, str] = {}
    opened: list[str] = []

    def news() -> tuple[Leftover, ...]:
        gc.collect()
        live = [*_owners()]
        leftovers: list[Leftover] = []
        names = None
        for thing in live:
            reference, keys = before.get(id(thing), (None, frozenset()))
            there = keys if reference is not None and reference() is thing else frozenset()
            for hook in hooks_of(thing):
                if (hook.table, hook.key) not in there:
                    names = names or _names(live)
                    leftovers.append(_leftover(hook, names.get(id(thing)) or _called(thing), places))
        fresh = [(where, hook) for where, hook in global_hooks() if (where, hook.table, hook.key) not in known]
        leftovers += [_leftover(hook, f"all of {where}", places) for where, hook in fresh]
        now = saved_tensors_pair()
        if now is not None and now != pair:
            place = opened[-1] if opened else UNKNOWN
            leftovers.append(Leftover("saved_tensors", function_name(now[0]), "this thread", place))
        return tuple(sorted(set(leftovers), key=str))

    with _traced(places, opened):
        yield news


def _leftover(hook: TableHook, on: str, places: dict[Any, str]) -> Leftover:
    return Leftover(hook.kind, function_name(hook.function), on, places.get(hook.key, UNKNOWN))


@contextmanager
def _traced(places: dict[Any, str], opened: list[str]) -> Iterator[None]:
    """Notes where each handle is made: every function of torch that registers a hook makes one, under a unique id."""
    handles = torch.utils.hooks.RemovableHandle
    pairs = getattr(torch.autograd.graph, "saved_tensors_hooks", None) if hasattr(torch.autograd, "graph") else None
    begin = handles.__init__
    enter, leave = getattr(pairs, "__enter__", None), getattr(pairs, "__exit__", None)

    def noted(self: Any, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        places[self.id] = caller()

    def entered(self: Any) -> Any:
        result = enter(self)  # type: ignore[misc]
        opened.append(caller())
        return result

    def left(self: Any, *arguments: Any) -> Any:
        if opened:
            opened.pop()
        return leave(self, *arguments)  # type: ignore[misc]

    handles.__init__ = noted  # type: ignore[method-assign]
    if pairs:
        pairs.__enter__, pairs.__exit__ = entered, left
    try:
        yield
    finally:
        handles.__init__ = begin  # type: ignore[method-assign]
        if pairs:
            pairs.__enter__, pairs.__exit__ = enter, leave


def caller() -> str:
    """``file:line`` of the innermost frame that is neither torch's nor hookcheck's."""
    libraries = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(libraries):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return UNKNOWN


def _owners() -> Iterator[Any]:
    """Every live module, tensor and optimizer. The class is asked for, since a proxy may import what it stands for."""
    classes = (nn.Module, torch.Tensor, torch.optim.Optimizer)
    for thing in gc.get_objects():
        if issubclass(type(thing), classes):
            yield thing


def _census() -> dict[int, tuple[weakref.ref[Any], frozenset[Any]]]:
    census = {}
    for thing in _owners():
        keys = frozenset((hook.table, hook.key) for hook in hooks_of(thing))
        if keys:
            census[id(thing)] = (weakref.ref(thing), keys)
    return census


def _names(live: list[Any]) -> dict[int, str]:
    """What each module and parameter is called: its path in the largest module that holds it."""
    roots = [thing for thing in live if isinstance(thing, nn.Module)]
    children = {id(child) for root in roots for child in root.children()}
    names: dict[int, str] = {}
    for root in (root for root in roots if id(root) not in children):
        of = f"of {type(root).__name__}"
        for path, module in root.named_modules():
            names[id(module)] = f"{path} ({type(module).__name__}) {of}" if path else f"{type(root).__name__}"
        for path, parameter in root.named_parameters():
            names[id(parameter)] = f"{path} {of}"
    return names


def _called(thing: Any) -> str:
    if isinstance(thing, torch.Tensor):
        return f"a tensor of shape {tuple(thing.shape)}"
    return f"an optimizer ({type(thing).__name__})"
