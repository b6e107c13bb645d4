"""Faults in what becomes of hooks and handles in pickle, ``torch.save`` and ``torch.load``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import Module, Parameter
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from ..engine import Fault, added, replaced
from .state_dict_hooks import Patch

TABLES = frozenset(name for name in vars(Module()) if "hooks" in name)


def restoring(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    """Restores modules, as pickle and copy do, from ``change(state)``."""
    return replaced(Module, "__setstate__", lambda original: lambda self, state: original(self, change(dict(state))))


def without_hooks(state: dict[str, Any]) -> dict[str, Any]:
    return {key: OrderedDict() if key in TABLES else value for key, value in state.items()}


def _without_flags(state: dict[str, Any]) -> dict[str, Any]:
    flags = ("_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called")
    return {key: OrderedDict() if key in flags else value for key, value in state.items()}


def _reversed(state: dict[str, Any]) -> dict[str, Any]:
    return {k: OrderedDict(reversed(list(v.items()))) if k in TABLES else v for k, v in state.items()}


def _handles(change: Callable[[Any], Any]) -> Patch:
    """Restores handles from ``change(state)``: their table, number, and tables of flags."""
    return replaced(RemovableHandle, "__setstate__", lambda original: lambda self, state: original(self, change(state)))


def _dead(state: Any) -> Any:
    if state[0] is None:
        raise TypeError("cannot create weak reference to 'NoneType' object")
    return state


def _count_stays() -> Patch:
    def make(original: Any) -> Any:
        def restore(self: Any, state: Any) -> None:
            count = RemovableHandle.next_id
            original(self, state)
            RemovableHandle.next_id = count

        return restore

    return replaced(RemovableHandle, "__setstate__", make)


def _tables_stay_missing(owner: Any, name: str) -> Patch:
    def make(original: Any) -> Any:
        def restore(self: Any, state: Any) -> None:
            there = name in vars(self) or name in state
            original(self, state)
            if not there:
                delattr(self, name)

        return restore

    return replaced(owner, "__setstate__", make)


def _steps_stay_as_they_are() -> Patch:
    """Restores an optimizer without having its class call the hooks of steps."""

    def make(original: Any) -> Any:
        def restore(self: Any, state: Any) -> None:
            with replaced(Optimizer, "_patch_step_function", lambda original: lambda self: None):
                original(self, state)

        return restore

    return replaced(Optimizer, "__setstate__", make)


def _reduced_without_hooks(self: Any, protocol: Any) -> Any:
    make, arguments, state, *others = object.__reduce_ex__(self, protocol)
    return (make, arguments, without_hooks(state), *others)


def _state_dict_with_hooks() -> Patch:
    def make(original: Any) -> Any:
        def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            result._metadata["hooks"] = self._forward_hooks
            return result

        return state_dict

    return replaced(Module, "state_dict", make)


def _parameters_warn() -> Patch:
    def make(original: Any) -> Any:
        def reduce(self: Any, protocol: Any) -> Any:
            torch.utils.hooks.warn_if_has_hooks(self)
            return original(self, protocol)

        return reduce

    return replaced(Parameter, "__reduce_ex__", make)


FAULTS = (
    Fault(
        "pickle restores handles for no table",
        lambda: _handles(lambda state: (None, *state[1:])),
        ("SZ-27", "SZ-01"),
        kinds=(),
    ),
    Fault("pickle restores no handle whose table is gone", lambda: _handles(_dead), ("SZ-02",), kinds=()),
    Fault("pickle restores handles without counting on", _count_stays, ("SZ-03",), kinds=()),
    Fault(
        "pickle restores modules without hooks",
        lambda: restoring(without_hooks),
        ("SZ-27", "SZ-01", "SZ-04", "SZ-05", "SZ-06", "SZ-11"),
        kinds=(),
    ),
    Fault("pickle restores hooks the other way round", lambda: restoring(_reversed), ("SZ-06", "SZ-11"), kinds=()),
    Fault("pickle restores hooks without their flags", lambda: restoring(_without_flags), ("SZ-06",), kinds=()),
    Fault(
        "pickle restores modules without their hook family",
        lambda: restoring(lambda state: {**state, "_is_full_backward_hook": None}),
        ("SZ-07",),
        kinds=(),
    ),
    Fault(
        "pickle restores old modules without a table that is newer",
        lambda: _tables_stay_missing(Module, "_state_dict_pre_hooks"),
        ("SZ-08", "SZ-28"),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "pickle restores optimizers without a table of hooks",
        lambda: _tables_stay_missing(Optimizer, "_optimizer_step_post_hooks"),
        ("SZ-09",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "pickle leaves hooks out",
        lambda: added(Module, "__reduce_ex__", _reduced_without_hooks),
        ("SZ-05", "SZ-10", "SZ-11", "SZ-29"),
        kinds=(),
    ),
    Fault("pickle gets hooks with a state_dict", _state_dict_with_hooks, ("SZ-12",), kinds=()),
    Fault("pickle warns of a parameter's hooks", _parameters_warn, ("SZ-13",), kinds=()),
    Fault(
        "pickle restores optimizers whose class does not call hooks yet",
        _steps_stay_as_they_are,
        ("SZ-29",),
        kinds=(),
        since="2.0",
    ),
)
