"""Faults in what acts on hooks do after one another: tables, handles, copies, and the order of a call."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..engine import Fault, added, fetched, replaced
from ..registering import call, deaf

HANDLE = torch.utils.hooks.RemovableHandle
SM = ("SM-01",)


def _sharing(module: Any, memo: dict[int, Any]) -> Any:
    """The deepcopy of a module that has the table of forward hooks in common with it."""
    new = type(module).__new__(type(module))
    memo.update({id(module): new, id(module._forward_hooks): module._forward_hooks})
    vars(new).update(copy.deepcopy(vars(module), memo))
    return new


@contextmanager
def _reusing() -> Iterator[None]:
    """Gives the id of a hook that was removed to the next one, and keeps the flags that go by the id."""
    freed: list[int] = []

    def init(original: Any) -> Any:
        def made(self: Any, *args: Any, **options: Any) -> None:
            original(self, *args, **options)
            self.id = freed.pop() if freed else self.id

        return made

    def remove(original: Any) -> Any:
        def removed(self: Any) -> None:
            if self.hooks_dict_ref().pop(self.id, None):
                freed.append(self.id)

        return removed

    with replaced(HANDLE, "__init__", init), replaced(HANDLE, "remove", remove):
        yield


def _newest(original: Any) -> Any:
    """Removes the newest hook where there are several."""

    def remove(self: Any) -> None:
        table = self.hooks_dict_ref()
        if table and self.id in table:
            table.popitem()

    return remove


FAULTS = (
    Fault(
        "registering after registering: prepend is ignored",
        lambda: deaf(torch.nn.Module, "register_forward_hook", prepend=False),
        SM,
        since="2.0",
    ),
    Fault("removing after registering: the newest hook goes", lambda: replaced(HANDLE, "remove", _newest), SM),
    Fault("calling after registering: full hooks run twice", lambda: fetched(lambda module, hooks: hooks * 2), SM),
    Fault(
        "calling after registering: hooks on all modules run last",
        lambda: call(
            ("*_global_forward_hooks.items()", "*()"),
            ("*self._forward_hooks.items()", "*self._forward_hooks.items(), *_global_forward_hooks.items()"),
        ),
        SM,
        since="2.1",
    ),
    Fault("registering after removing: flags of the hook before remain", _reusing, SM, since="2.0"),
    Fault(
        "registering after copying: a deepcopy shares the table",
        lambda: added(torch.nn.Module, "__deepcopy__", _sharing),
        SM,
    ),
)
