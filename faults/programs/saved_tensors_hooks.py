"""Faults in how a context's hooks pack and unpack saved tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from ..engine import Fault, replaced

Change = Callable[[Any], Any]


def pairs(pack: Change = lambda hook: hook, unpack: Change = lambda hook: hook) -> AbstractContextManager[None]:
    """Has contexts apply ``pack(hook)`` and ``unpack(hook)`` where they are given hooks."""
    return replaced(
        torch.autograd.graph.saved_tensors_hooks,
        "__init__",
        lambda original: lambda self, p, u: original(self, pack(p), unpack(u)),
    )


@contextmanager
def crossing(enter: Change, leave: Change) -> Iterator[None]:
    """Replaces what contexts do on entering and on leaving."""
    context = torch.autograd.graph.saved_tensors_hooks
    with replaced(context, "__enter__", enter), replaced(context, "__exit__", leave):
        yield


def unset() -> AbstractContextManager[None]:
    """Contexts set nothing."""
    return crossing(lambda _: lambda self: None, lambda _: lambda self, *error: None)


def leaves_left_out() -> AbstractContextManager[None]:
    """Leaves are saved without hooks."""

    def pack(hook: Any) -> Any:
        return lambda t: (None, t.detach()) if t.is_leaf else (hook, hook(t))

    return pairs(pack, lambda hook: lambda packed: packed[1] if packed[0] is None else hook(packed[1]))


def outermost() -> AbstractContextManager[None]:
    """Only the first of nested contexts sets its hooks."""
    depth: list[Any] = []

    def enter(original: Any) -> Any:
        return lambda self: (depth.append(self), original(self) if len(depth) == 1 else None)[1]

    def leave(original: Any) -> Any:
        return lambda self, *error: original(self, *error) if depth.pop() is self and not depth else None

    return crossing(enter, leave)


@contextmanager
def late() -> Iterator[None]:
    """Unpacking uses the hooks in whose context backward runs."""
    entered: list[Any] = []

    def enter(original: Any) -> Any:
        return lambda self: (original(self), entered.append(self.of_its_own))[0]

    def leave(original: Any) -> Any:
        return lambda self, *error: (entered.pop(), original(self, *error))[1]

    def make(original: Any) -> Any:
        def init(self: Any, pack: Any, unpack: Any) -> None:
            self.of_its_own = unpack
            original(self, pack, lambda packed: entered[-1](packed) if entered else packed)

        return init

    with crossing(enter, leave), replaced(torch.autograd.graph.saved_tensors_hooks, "__init__", make):
        yield


def kept_result(hook: Any) -> Any:
    """Unpacks what was packed once, and keeps the result."""
    results: dict[int, Any] = {}

    def unpack(packed: Any) -> Any:
        if id(packed) not in results:
            results[id(packed)] = packed, hook(packed)
        return results[id(packed)][1]

    return unpack


def guarded(hook: Any) -> Any:
    """Detects a change in place of what is unpacked."""

    def unpack(packed: Any) -> Any:
        version = getattr(packed, "_version", None)
        result = hook(packed)
        if getattr(packed, "_version", None) != version:
            raise RuntimeError("an unpack hook is modifying its input in place")
        return result

    return unpack


def tensors_only(hook: Any) -> Any:
    """Refuses what is no tensor."""

    def pack(tensor: Any) -> Any:
        result = hook(tensor)
        if not isinstance(result, torch.Tensor):
            raise TypeError("a pack hook must return a tensor")
        return result

    return pack


def wrapping(hook: Any) -> Any:
    """Raises a RuntimeError where the hook raises anything."""

    def call(thing: Any) -> Any:
        try:
            return hook(thing)
        except Exception as raised:
            raise RuntimeError(f"{type(raised).__name__}: {raised}") from None

    return call


def grad_mode_on(hook: Any) -> Any:
    """Calls the hook with grad mode on."""

    def pack(tensor: Any) -> Any:
        with torch.enable_grad():
            return hook(tensor)

    return pack


def twice(hook: Any) -> Any:
    """Calls the hook twice."""
    return lambda tensor: (hook(tensor), hook(tensor))[1]


def disabling(change: Change) -> AbstractContextManager[None]:
    """Replaces ``disable_saved_tensors_hooks``."""
    return replaced(torch.autograd.graph, "disable_saved_tensors_hooks", change)


def forgetting(original: Any) -> Any:
    """Enables the hooks on leaving although an outer context disables them."""

    @contextmanager
    def disabled(message: str) -> Iterator[None]:
        try:
            torch._C._autograd._saved_tensors_hooks_disable(message)
            yield
        finally:
            torch._C._autograd._saved_tensors_hooks_enable()

    return disabled


def entered_once() -> AbstractContextManager[None]:
    """A context that was entered before sets no hooks."""
    used: list[Any] = []

    def entering(original: Any) -> Any:
        def enter(self: Any) -> None:
            if self in used:
                self.pack_hook = self.unpack_hook = lambda tensor: tensor
            used.append(self)
            original(self)

        return enter

    return replaced(torch.autograd.graph.saved_tensors_hooks, "__enter__", entering)


FAULTS = (
    Fault("saved tensors: contexts set no hooks", unset, ("ST-01", "ST-05", "ST-19")),
    Fault("saved tensors: leaves are not packed", leaves_left_out, ("ST-01", "ST-26")),
    Fault("saved tensors: pack is called twice", lambda: pairs(twice), ("ST-01", "ST-04", "ST-06")),
    Fault(
        "saved tensors: unpack gets a copy of what was packed",
        lambda: pairs(unpack=lambda hook: lambda packed: hook(copy.copy(packed))),
        ("ST-03",),
    ),
    Fault("saved tensors: pack may return tensors only", lambda: pairs(tensors_only), ("ST-04",)),
    Fault(
        "saved tensors: unpack is called once and its result kept",
        lambda: pairs(unpack=kept_result),
        ("ST-07", "ST-26"),
    ),
    Fault(
        "saved tensors: pack gets a copy",
        lambda: pairs(lambda hook: lambda t: hook(t.clone())),
        ("ST-08", "ST-15", "ST-17", "ST-22"),
    ),
    Fault("saved tensors: changes by unpack are noticed", lambda: pairs(unpack=guarded), ("ST-09",)),
    Fault("saved tensors: the outermost of nested contexts applies", outermost, ("ST-13",)),
    Fault("saved tensors: pack runs with grad mode on", lambda: pairs(grad_mode_on), ("ST-18",)),
    Fault("saved tensors: backward unpacks with the hooks of its own context", late, ("ST-20",)),
    Fault(
        "saved tensors: disabling them does nothing", lambda: disabling(lambda _: lambda _: nullcontext()), ("ST-21",)
    ),
    Fault("saved tensors: an inner context that disables them enables them", lambda: disabling(forgetting), ("ST-21",)),
    Fault("saved tensors: what hooks raise becomes a RuntimeError", lambda: pairs(wrapping, wrapping), ("ST-25",)),
    Fault(
        "saved tensors: what pack gives None for is kept itself",
        lambda: pairs(lambda pack: lambda t: t.detach() if (packed := pack(t)) is None else packed),
        ("ST-04",),
        since="1.10",
    ),
    Fault(
        "saved tensors: indices are not packed",
        lambda: pairs(
            lambda pack: lambda t: (pack, pack(t)) if t.is_floating_point() else (None, t),
            lambda unpack: lambda packed: unpack(packed[1]) if packed[0] else packed[1],
        ),
        ("ST-01",),
        since="1.10",
    ),
    Fault("saved tensors: a context works once", entered_once, ("ST-01",), since="1.10"),
    Fault(
        "saved tensors: pack gets tensors without dimensions detached",
        lambda: pairs(lambda pack: lambda t: pack(t if t.dim() else t.detach())),
        ("ST-01",),
        since="1.10",
    ),
)
