"""Faults in what acts on hooks do after one another: tables, handles, flags, copies, modes, and the order of a call."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from ..engine import Fault, calling, engine, fetched, replaced
from ..registering import call, deaf
from .copying import _deepcopies
from .serialization import TABLES, restoring, without_hooks

HANDLE, MODULE = torch.utils.hooks.RemovableHandle, torch.nn.Module
SM = ("SM-01",)
State = dict[str, Any]

ALWAYS = "if hook_id in self._forward_hooks_always_called and hook_id not in"
GLOBAL_ALWAYS = "if hook_id in _global_forward_hooks_always_called and"


@contextmanager
def _reusing() -> Iterator[None]:
    """Gives the id of a hook that was removed to the next one, and keeps the flags that go by the id."""
    freed: list[int] = []

    def init(original: Any) -> Any:
        def init_reusing(self: Any, *args: Any, **options: Any) -> None:
            original(self, *args, **options)
            self.id = freed.pop() if freed else self.id

        return init_reusing

    def remove(original: Any) -> Any:
        def removed(self: Any) -> None:
            if self.hooks_dict_ref().pop(self.id, None):
                freed.append(self.id)

        return removed

    with replaced(HANDLE, "__init__", init), replaced(HANDLE, "remove", remove):
        yield


def _of_another(pick: Callable[[list[int], int], int]) -> AbstractContextManager[None]:
    """Removes the hook with the id ``pick(ids, id)`` instead."""

    def make(original: Any) -> Any:
        def remove(self: Any) -> None:
            table = self.hooks_dict_ref()
            if table and self.id in table:
                del table[pick([*table], self.id)]

        return remove

    return replaced(HANDLE, "remove", make)


def _of_modules(original: Any) -> Any:
    """Removes no hook that is on all modules."""
    tables = [table for name, table in vars(torch_module).items() if name.startswith("_global_")]
    return lambda self: None if any(self.hooks_dict_ref() is table for table in tables) else original(self)


def _by_age(state: State) -> State:
    return {name: OrderedDict(sorted(v.items())) if name in TABLES else v for name, v in state.items()}


def _without(name: str) -> Callable[[State], State]:
    return lambda state: {**state, name: OrderedDict()}


@contextmanager
def _unpickling(change: Callable[[State], State]) -> Iterator[None]:
    """Restores modules from ``change(state)`` where they were pickled, but not where they are copied."""
    copying: list[None] = []

    def make(original: Any) -> Any:
        def deepcopy(*args: Any) -> Any:
            copying.append(None)
            try:
                return original(*args)
            finally:
                copying.pop()

        return deepcopy

    with replaced(copy, "deepcopy", make), restoring(lambda state: state if copying else change(state)):
        yield


def _called_plainly(where: Callable[[Any], bool]) -> AbstractContextManager[None]:
    """Calls a module without its hooks ``where`` so."""

    def make(original: Any) -> Any:
        return lambda self, *args, **kwargs: (self.forward if where(self) else original.__get__(self))(*args, **kwargs)

    return replaced(MODULE, "__call__", make)


def _in_backward_only() -> AbstractContextManager[None]:
    """Calls full hooks in ``backward`` but not in ``torch.autograd.grad``."""
    asked: list[None] = []

    def make(original: Any) -> Any:
        def grad(*args: Any, **options: Any) -> Any:
            asked.append(None)
            try:
                return original(*args, **options)
            finally:
                asked.pop()

        return grad

    stack = ExitStack()
    stack.enter_context(replaced(torch.autograd, "grad", make))
    stack.enter_context(calling(lambda hook, *given: None if asked else hook(*given)))
    return stack


def _once(original: Any) -> Any:
    """Forgets the hooks of a call after the first backward."""

    def init(self: Any, module: Any, hooks: Any, *others: Any) -> None:
        left = [*hooks]
        original(self, module, [lambda *given: left.pop(0)(*given) if left else None for _ in hooks], *others)

    return init


def _looked_up_late(original: Any) -> Any:
    """Runs in backward the full hooks of the module that it has then."""

    def init(self: Any, module: Any, hooks: Any, *others: Any) -> None:
        def now(*given: Any) -> None:
            for hook in module._get_backward_hooks()[0]:
                hook(*given)

        original(self, module, [now], *others)

    return init


def _without_a_graph(original: Any) -> Any:
    """Calls full hooks at once where there will be no backward."""

    def setup(self: Any, result: Any) -> Any:
        if not torch.is_grad_enabled():
            for hook in self.user_hooks:
                hook(self.module, (None,), (None,))
        return original(self, result)

    return setup


def _reversed_in_eval(module: Any, hooks: list[Any]) -> list[Any]:
    return hooks if module.training else hooks[::-1]


FAULTS = (
    *(
        Fault(
            f"registering after registering: prepend is ignored of a {kind} hook",
            lambda kind=kind: deaf(MODULE, f"register_{kind}_hook", prepend=False),
            SM,
            since="2.0",
        )
        for kind in ("forward_pre", "forward", "full_backward", "full_backward_pre")
    ),
    *(
        Fault(
            f"registering after registering: with_kwargs of a {kind} hook is {'kept' if passed else 'lost'}",
            lambda kind=kind, passed=passed: deaf(MODULE, f"register_{kind}_hook", with_kwargs=passed),
            SM,
            since="2.0",
        )
        for kind in ("forward_pre", "forward")
        for passed in (True, False)
    ),
    Fault("registering after removing: flags of the hook before remain", _reusing, SM, since="2.0"),
    Fault("removing after registering: the newest hook goes", lambda: _of_another(lambda ids, id: max(ids)), SM),
    Fault("removing after registering: the first hook goes", lambda: _of_another(lambda ids, id: ids[0]), SM),
    Fault(
        "removing after registering: hooks on all modules stay",
        lambda: replaced(HANDLE, "remove", _of_modules),
        SM,
    ),
    Fault(
        "removing in a call: the next hook is skipped",
        lambda: call(
            ("*_global_forward_pre_hooks.items(),", "list(table.items())[at]"),
            (
                "*self._forward_pre_hooks.items(),",
                "for table in (_global_forward_pre_hooks, self._forward_pre_hooks) "
                "for at in range(len(table)) if at < len(table)",
            ),
        ),
        SM,
        since="2.1",
    ),
    Fault(
        "removing in a call: a forward hook that goes is not run",
        lambda: call(
            (
                "hook_result = hook(self, args, result)",
                "hook_result = hook(self, args, result) "
                "if hook_id in self._forward_hooks or hook_id in _global_forward_hooks else None",
            )
        ),
        SM,
        since="2.1",
    ),
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
    Fault(
        "calling after failing: always_call is forgotten",
        lambda: call((ALWAYS, "if False and hook_id not in")),
        SM,
        since="2.1",
    ),
    Fault(
        "calling after failing: always_call on all modules is forgotten",
        lambda: call((GLOBAL_ALWAYS, "if False and")),
        SM,
        since="2.1",
    ),
    Fault(
        "calling after failing: hooks without always_call run too",
        lambda: call((ALWAYS, "if hook_id not in")),
        SM,
        since="2.1",
    ),
    Fault(
        "calling without gradients: no hook runs", lambda: _called_plainly(lambda m: not torch.is_grad_enabled()), SM
    ),
    Fault("calling without gradients: full hooks run", lambda: engine("setup_output_hook", _without_a_graph), SM),
    Fault("calling in eval: no hook runs", lambda: _called_plainly(lambda module: not module.training), SM),
    Fault("calling in eval: full hooks run the other way round", lambda: fetched(_reversed_in_eval), SM),
    Fault("backward after backward: full hooks run once", lambda: engine("__init__", _once), SM),
    Fault("backward after registering: full hooks are those of now", lambda: engine("__init__", _looked_up_late), SM),
    Fault("grad after calling: full hooks do not run", _in_backward_only, SM),
    Fault("registering after copying: a deepcopy shares the tables", lambda: _deepcopies(lambda table: table), SM),
    Fault("calling after copying: a deepcopy has no hooks", lambda: _deepcopies(lambda table: OrderedDict()), SM),
    Fault("calling after copying: hooks run in the order of registering", lambda: restoring(_by_age), SM, since="2.0"),
    Fault(
        "calling after copying: with_kwargs is lost",
        lambda: restoring(_without("_forward_hooks_with_kwargs")),
        SM,
        since="2.0",
    ),
    Fault(
        "calling after copying: always_call is lost",
        lambda: restoring(_without("_forward_hooks_always_called")),
        SM,
        since="2.1",
    ),
    Fault("calling after unpickling: hooks are left out", lambda: _unpickling(without_hooks), SM),
    Fault(
        "calling after unpickling: hooks run in the order of registering",
        lambda: _unpickling(_by_age),
        SM,
        since="2.0",
    ),
    Fault(
        "calling after unpickling: with_kwargs is lost",
        lambda: _unpickling(_without("_forward_pre_hooks_with_kwargs")),
        SM,
        since="2.0",
    ),
)
