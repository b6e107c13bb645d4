"""Hooks that someone's own function registers: each is called through a recorder, and says what it was given.

While `watching` is open, torch's functions that register hooks on modules, on all modules and on tensors put a recorder
in the place of the hook. So hooks are seen however late they come: a forward hook may well put one on its output. Hooks
on Nodes, on several tensors at once and on what is saved are registered past these functions and are not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any

import torch

from hookcheck.hooks.kinds import FORWARD, FORWARD_PRE, KINDS, POST_ACCUMULATE, HookKind
from hookcheck.models.leftovers import caller
from hookcheck.models.memory import Given
from hookcheck.models.tables import function_name, global_hooks, hooks_of
from hookcheck.probe.copying import asks, copied, tensors_among, version, view_of
from hookcheck.probe.observation import Event
from hookcheck.probe.registering import owner

SCOPES = ("module", "global", "leaf")
_KINDS = {
    (kind.scope, kind.register, kind.kwargs): kind
    for kind in KINDS.values()
    if kind.observes and kind.scope in (*SCOPES, "output")
}


@dataclass(eq=False)
class Watched:
    """One hook, and what became of it.

    ``on`` is the path of its module, the name of its parameter or input (``input 0``), or an output (``path[0]``); None
    for a global hook, and for a tensor that is none of these. ``events`` are its calls, ``returned`` is at how many it
    returned something, ``wrote`` at how many it wrote to a tensor that it was given, ``left`` whether it is still
    there at the end. ``given`` refers weakly to what it was given.
    """

    kind: HookKind
    on: str | None
    function: str
    place: str
    events: list[Event] = field(default_factory=list)
    returned: int = 0
    wrote: int = 0
    left: bool = False
    given: Given = field(default_factory=Given)

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for all hooks that one line registers of one function."""
        return self.kind.name, self.function, self.place


Honoured = Callable[[Watched], bool]
"""Whether torch is given what a hook returns, or None in its place."""


class Watch:
    """The hooks that were registered, in that order, and all their ``events``."""

    def __init__(
        self,
        modules: Mapping[str, torch.nn.Module],
        leaves: Mapping[str, Any],
        honoured: Honoured,
        weakly: bool = False,
    ) -> None:
        """``modules`` by path and ``leaves`` by name are what hooks are seen on.

        With ``weakly`` nothing of what they are given is kept, so that what they keep themselves shows.
        """
        self.paths = {id(module): path for path, module in modules.items()}
        self.names = {id(leaf): name for name, leaf in leaves.items()}
        self.honoured = honoured
        self.weakly = weakly
        self.hooks: dict[tuple[Any, ...], Watched] = {}
        self.events: list[tuple[int, Event]] = []
        self._outputs: list[tuple[str, Any]] = []
        self._recorders: dict[int, tuple[Any, Watched]] = {}

    def recorder(self, scope: str, register: str, target: Any, hook: Any, options: Mapping[str, Any]) -> Any:
        """What is registered for ``hook``; the hook itself where ``target`` is none of the model's modules."""
        if id(hook) in self._recorders or (scope == "module" and id(target) not in self.paths):
            return hook
        on = {"module": self.paths.get, "leaf": self.names.get}.get(scope, lambda _: None)(id(target))
        if scope == "leaf" and on is None:
            on = self._output(target)
            scope = "leaf" if on is None else "output"
        kind = _KINDS.get((scope, register, bool(options.get("with_kwargs"))))
        if kind is None:
            return hook
        place = caller()
        key: tuple[Any, ...] = (kind.name, on, function_name(hook), place)
        if scope != "output":  # an output is another tensor at each call, and its hook the same
            key = (*key, len(self.hooks))
        watched = self.hooks.setdefault(key, Watched(kind, on, function_name(hook), place))
        recorder = partial(self._record, watched, hook)
        self._recorders[id(recorder)] = recorder, watched
        return recorder

    def _record(self, watched: Watched, hook: Any, *arguments: Any) -> Any:
        """Notes what the hook is called with and calls it."""
        given = self.paths.get(id(arguments[0])) if watched.kind.scope in ("module", "global") else None
        path = (given or "") if watched.on is None else watched.on
        if self.weakly:
            watched.given.note(arguments)
        else:
            self._note(watched, path, given, arguments)
        versions = _versions(arguments)
        if watched.kind.call == FORWARD:
            self._outputs.append((path, arguments[-1]))
        try:
            answer = hook(*arguments)
        finally:
            if watched.kind.call == FORWARD:
                self._outputs.pop()
        watched.wrote += _versions(arguments) != versions
        watched.returned += answer is not None
        return answer if self.honoured(watched) else None

    def _note(self, watched: Watched, path: str, given: str | None, arguments: tuple[Any, ...]) -> None:
        kind = watched.kind
        of_module = kind.scope in ("module", "global")
        rest = arguments[1:] if of_module else (arguments[0].grad,) if kind.call == POST_ACCUMULATE else arguments
        number = sum(event.path == path for event in watched.events)
        # Gradients are copied, since one's own hook may write to them; what goes in and out of a module is kept as the
        # truth keeps it, in its own memory, to which in-place operations write.
        keep = partial(copied, tensor=view_of) if kind.call in (FORWARD, FORWARD_PRE) else copied
        event = Event(kind.name, path, number, given, tuple(map(keep, rest)), asks(tensors_among(rest)))
        watched.events.append(event)
        self.events.append((0, event))

    def _output(self, tensor: Any) -> str | None:
        """Which output of a module whose forward hook runs it is."""
        for path, output in reversed(self._outputs):
            for place, item in enumerate(output if isinstance(output, tuple) else (output,)):
                if item is tensor:
                    return f"{path}[{place}]"
        return None

    def adopt(self, known: Collection[Any]) -> None:
        """Has hooks on all modules go through recorders that were not registered by the name of torch's function.

        ``known`` are the keys of those that were there before.
        """
        for _, hook in list(global_hooks()):
            kind = KINDS.get(hook.kind.replace("global_backward_pre", "global_full_backward_pre"))
            if kind is None or hook.key in known or id(hook.function) in self._recorders:
                continue
            recorder = self.recorder("global", kind.register, None, hook.function, {})
            getattr(torch.nn.modules.module, hook.table)[hook.key] = recorder

    def look(self, model: torch.nn.Module) -> None:
        """Notes which hooks are still there."""
        things = (*model.modules(), *model.parameters())
        functions = [hook.function for thing in things for hook in hooks_of(thing)]
        functions += [hook.function for _, hook in global_hooks()]
        for function in functions:
            if id(function) in self._recorders:
                self._recorders[id(function)][1].left = True


def _versions(value: Any) -> list[int]:
    if isinstance(value, torch.Tensor):
        return [count] if (count := version(value)) is not None else []
    if isinstance(value, dict):
        value = [*value.values()]
    return [count for item in value for count in _versions(item)] if isinstance(value, (tuple, list)) else []


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """While it is open, hooks that are registered go through recorders of ``watch``."""
    originals = {}
    for kind in KINDS.values():
        of = owner(kind) if kind.scope in SCOPES else None
        if of is not None and hasattr(of, kind.register):
            originals[kind.scope, kind.register] = of, getattr(of, kind.register)
    for (scope, register), (of, original) in originals.items():
        setattr(of, register, _registering(watch, scope, register, original))
    try:
        yield
    finally:
        for (_, register), (of, original) in originals.items():
            setattr(of, register, original)


def _registering(watch: Watch, scope: str, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def register(*arguments: Any, **options: Any) -> Any:
        before = 0 if scope == "global" else 1
        target = arguments[0] if before else None
        hook = options.pop("hook") if "hook" in options else arguments[before]
        recorder = watch.recorder(scope, name, target, hook, options)
        return original(*arguments[:before], recorder, *arguments[before + 1 :], **options)

    return register
