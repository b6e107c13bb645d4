"""Faults in what the handles of hooks do, and in what becomes of hooks that come and go during a call."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from ..engine import Fault, added, replaced
from ..registering import call, edited, local

HANDLE = torch.utils.hooks.RemovableHandle


def _numbered_anew(original: Any) -> Any:
    """Gives a handle the number of hooks in the table as its id."""

    def init(self: Any, hooks: Any, **options: Any) -> None:
        original(self, hooks, **options)
        self.id = len(hooks)

    return init


def _told_apart(original: Any) -> Any:
    """Has every exception of a call come out as a RuntimeError."""

    def enter(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except Exception as error:
            raise RuntimeError(str(error)) from error

    return enter


@contextmanager
def _holding_one() -> Iterator[None]:
    """Drops the hook of a table that was emptied when another comes."""
    emptied: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def removing(original: Any) -> Any:
        def remove(self: Any) -> None:
            original(self)
            table = self.hooks_dict_ref()
            if table is not None and not table:
                emptied[id(table)] = table

        return remove

    def making(original: Any) -> Any:
        def init(self: Any, hooks: Any, **options: Any) -> None:
            if emptied.get(id(hooks)) is hooks:
                hooks.clear()
            original(self, hooks, **options)

        return init

    with replaced(HANDLE, "remove", removing), replaced(HANDLE, "__init__", making):
        yield


def _weakly(hook: Any) -> Any:
    """The hook, held weakly if it is a bound method."""
    if not inspect.ismethod(hook):
        return hook
    method = weakref.WeakMethod(hook)
    return lambda *arguments: there(*arguments) if (there := method()) else None


def _quiet(hook: Any, about: Callable[[Exception], bool]) -> Any:
    """The hook, without some of its errors."""

    def run(*arguments: Any) -> Any:
        try:
            return hook(*arguments)
        except Exception as error:
            if not about(error):
                raise
        return None

    return run


FAULTS = (
    Fault(
        "a handle keeps its hook where the context ends with an error",
        lambda: replaced(HANDLE, "__exit__", lambda leave: lambda self, kind, *rest: None if kind else self.remove()),
        ("HD-01",),
    ),
    Fault(
        "a handle gives its context nothing",
        lambda: replaced(HANDLE, "__enter__", lambda enter: lambda self: None),
        ("HD-01",),
    ),
    Fault(
        "a handle removes its hook once only",
        lambda: edited(HANDLE, "remove", ("and self.id in hooks_dict", "")),
        ("HD-01", "HD-03"),
    ),
    Fault(
        "a handle removes the last hook",
        lambda: replaced(HANDLE, "remove", lambda remove: lambda self: self.hooks_dict_ref().popitem() and None),
        ("HD-03", "GL-10", "RG-04"),
    ),
    Fault(
        "a handle gets an id that is in use",
        lambda: replaced(HANDLE, "__init__", _numbered_anew),
        ("HD-03", "U-21"),
    ),
    Fault(
        "a handle takes its hook along when it is dropped",
        lambda: added(HANDLE, "__del__", lambda self: self.remove()),
        ("HD-03",),
    ),
    Fault(
        "a handle leaves the flags of its hook",
        lambda: edited(HANDLE, "remove", ("self.extra_dict_ref", "()")),
        ("HD-04",),
        since="2.1",
    ),
    Fault(
        "a handle leaves the flags of a hook that is gone",
        lambda: edited(
            HANDLE, "remove", ("del hooks_dict[self.id]", "del hooks_dict[self.id]\n    else:\n        return")
        ),
        ("HD-04",),
        since="2.1",
    ),
    Fault(
        "a handle needs its module",
        lambda: edited(HANDLE, "remove", ("hooks_dict is not None and ", "")),
        ("HD-05",),
    ),
    Fault(
        "a handle's table holds hooks in wrappers",
        lambda: local("forward_hook", lambda hook: partial(hook)),
        ("U-21",),
    ),
    Fault(
        "saving a tensor with hooks warns of nothing",
        lambda: replaced(torch.utils.hooks, "warn_if_has_hooks", lambda warn: lambda tensor: None),
        ("HD-02",),
    ),
    Fault(
        "saving a tensor whose hooks are marked warns",
        lambda: replaced(torch.utils.hooks, "unserializable_hook", lambda mark: lambda hook: hook),
        ("HD-02",),
        since="2.4",
    ),
    Fault(
        "a hook that comes during a call is left out of it",
        lambda: call(
            ("result = None", "result, kept = None, [*self._forward_hooks.items()]"),
            ("*self._forward_hooks.items()", "*kept"),
        ),
        ("U-03",),
        since="2.1",
    ),
    Fault(
        "a legacy hook that comes during a call runs in it",
        lambda: call(("if non_full_backward_hooks:", "if non_full_backward_hooks := self._get_backward_hooks()[1]:")),
        ("U-03",),
        since="2.1",
    ),
    Fault(
        "a full backward pre-hook that comes during a call runs in it",
        lambda: call(
            (
                "result = bw_hook.setup_output_hook(result)",
                "result = bw_hook.setup_output_hook(result); bw_hook.user_pre_hooks = self._get_backward_pre_hooks()",
            )
        ),
        ("U-03",),
        since="2.1",
    ),
    Fault(
        "a hook that goes during a call is left out of it",
        lambda: call(
            (
                "hook_result = hook(self, args, result)",
                "hook_result = hook(self, args, result) if hook_id in self._forward_hooks else None",
            )
        ),
        ("U-04",),
        since="2.1",
    ),
    Fault(
        "an error of a hook comes out as another",
        lambda: replaced(torch.nn.Module, "__call__", _told_apart),
        ("U-12", "FW-17"),
    ),
    Fault(
        "a hook is marked by something that is put around it",
        lambda: replaced(torch.utils.hooks, "unserializable_hook", lambda mark: lambda hook: mark(partial(hook))),
        ("HD-02",),
    ),
    Fault("a table of hooks that was emptied holds one", _holding_one, ("HD-01",)),
    Fault(
        "a full backward hook that is a method goes with its object",
        lambda: local("full_backward_hook", _weakly),
        ("HD-03",),
    ),
    Fault(
        "a StopIteration of a forward hook goes unnoticed",
        lambda: local("forward_hook", lambda hook: _quiet(hook, lambda error: isinstance(error, StopIteration))),
        ("U-12",),
    ),
    Fault(
        "an error of a full backward hook that has no text goes unnoticed",
        lambda: local("full_backward_hook", lambda hook: _quiet(hook, lambda error: not error.args)),
        ("U-12",),
    ),
)
