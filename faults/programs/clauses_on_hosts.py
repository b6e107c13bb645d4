"""Faults that only some host shows: hooks that are lost on what was changed, copied or averaged."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn
from torch.fx import GraphModule
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils import fusion, parametrizations, parametrize, prune
from torch.optim.swa_utils import AveragedModel
from torch.utils.hooks import BackwardHook

from ..engine import Fault, added, replaced
from .interactions import _called_plainly

MODULE, HANDLE = nn.Module, torch.utils.hooks.RemovableHandle
REGISTERING = "register_forward_hook"


def _where(test: Callable[[Any], bool], name: str = REGISTERING) -> AbstractContextManager[None]:
    """Registering does nothing on a module that is such."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, *args: Any, **options: Any) -> Any:
            return original(self, (lambda *_: None) if test(self) else hook, *args, **options)

        return register

    return replaced(MODULE, name, make)


def _marking(owner: Any, name: str) -> AbstractContextManager[None]:
    """A function marks the module that it is given, and that which it gives."""

    def make(original: Any) -> Any:
        def change(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            for module in (result, args[0], vars(args[0]).get("_modules", {}).get("module")):
                if isinstance(module, nn.Module):
                    vars(module)["marked"] = True
            return result

        return change

    return replaced(owner, name, make)


def is_marked(module: Any) -> bool:
    return "marked" in vars(module)


@contextmanager
def _deaf(owner: Any, name: str) -> Iterator[None]:
    """Registering a forward hook does nothing on what a function was given or gave."""
    with _marking(owner, name), _where(is_marked):
        yield


@contextmanager
def _averages_called_plainly() -> Iterator[None]:
    with _marking(AveragedModel, "__init__"), _called_plainly(is_marked):
        yield


@contextmanager
def _held_weakly() -> Iterator[None]:
    """The graph calls hooks only as long as something else refers to their module."""
    refers, hooks = WeakKeyDictionary[Any, Any](), WeakKeyDictionary[Any, Any]()
    module = property(lambda self: refers[self](), lambda self, owner: refers.update({self: ref(owner)}))
    user_hooks = property(lambda self: hooks[self] if self.module else [], lambda self, all: hooks.update({self: all}))
    with added(BackwardHook, "module", module), added(BackwardHook, "user_hooks", user_hooks):
        yield


def _own_call(original: Any) -> Any:
    """A call of a subclass with a call of its own goes past the pre-hooks."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "__call__" not in vars(type(self)):
            return original(self, *args, **kwargs)
        hooks, self._forward_pre_hooks = self._forward_pre_hooks, type(self._forward_pre_hooks)()
        try:
            return original(self, *args, **kwargs)
        finally:
            self._forward_pre_hooks = hooks

    return call


def _state_of_the_pruned(original: Any) -> Any:
    """Saving a module that was ever pruned goes past its hooks."""

    def save(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_marked(self):
            self._state_dict_hooks.clear()
        return original(self, *args, **kwargs)

    return save


def _silently(name: str) -> Callable[[], AbstractContextManager[None]]:
    """Registering on a ScriptModule does nothing, and refuses nothing."""
    methods = vars(torch.jit.RecursiveScriptModule)
    owner = torch.jit.RecursiveScriptModule if name in methods else torch.jit.ScriptModule
    return lambda: replaced(owner, name, lambda original: lambda self, hook, **options: HANDLE(OrderedDict()))


def _is_compiled(module: Any) -> bool:
    """An OptimizedModule, by name: torch imports its class late."""
    return type(module).__name__ == "OptimizedModule"


def _has_parts(module: Any) -> bool:
    """Whether it is a container; of an OptimizedModule, whether the module in it is one."""
    return any(True for _ in getattr(module, "_orig_mod", module).children())


def _irremovable(test: Callable[[Any], bool], name: str) -> AbstractContextManager[None]:
    """A handle of a module that is such removes nothing."""

    def make(original: Any) -> Any:
        def register(self: Any, *args: Any, **options: Any) -> Any:
            handle = original(self, *args, **options)
            if test(self):
                handle.remove = lambda: None
            return handle

        return register

    return replaced(MODULE, name, make)


def _compiled_without_its_hooks(_: Any) -> Any:
    """What is compiled in place is the forward of a module rather than its call."""

    def compile(self: Any, **options: Any) -> None:
        self._compiled_call_impl = torch.compile(self.forward, **options)

    return compile


def _containers_compiled_without_their_hooks(original: Any) -> Any:
    """The same of modules with others in them alone."""
    past = _compiled_without_its_hooks(original)

    def compile(self: Any, **options: Any) -> None:
        (past if _has_parts(self) else original)(self, **options)

    return compile


@contextmanager
def _pruning() -> Iterator[None]:
    with _marking(prune, "remove"), replaced(MODULE, "state_dict", _state_of_the_pruned):
        yield


@contextmanager
def marking_copies(kind: type, shallow: bool) -> Iterator[None]:
    """Marks shallow copies of things of a kind, or deep ones."""

    def make(original: Any) -> Any:
        def reconstruct(copied: Any, memo: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(copied, memo, *args, **kwargs)
            if isinstance(result, kind) and (memo is None) is shallow:
                vars(result)["marked"] = True
            return result

        return reconstruct

    with replaced(copy, "_reconstruct", make):
        yield


@contextmanager
def marking_unpickled(kind: type) -> Iterator[None]:
    """Marks things of a kind that were pickled by themselves."""

    def make(original: Any) -> Any:
        def loads(text: bytes) -> Any:
            result = original(text)
            if isinstance(result, kind):
                vars(result)["marked"] = True
            return result

        return loads

    with replaced(pickle, "loads", make):
        yield


@contextmanager
def where_marked(
    marking: AbstractContextManager[None], deaf: AbstractContextManager[None] | None = None
) -> Iterator[None]:
    """Registering does nothing on what is marked: a forward hook on a module, unless it is said what does nothing."""
    with marking, deaf or _where(is_marked):
        yield


def once(owner: type, name: str, table: str) -> AbstractContextManager[None]:
    """Registering does nothing on what had hooks in that table, which were all removed."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, *args: Any, **options: Any) -> Any:
            too_late = "hooked" in vars(self) and not getattr(self, table)
            vars(self)["hooked"] = True
            return original(self, (lambda *_: None) if too_late else hook, *args, **options)

        return register

    return replaced(owner, name, make)


def _editing_copies(original: Any) -> Any:
    """Hooks before loading get a copy of the dict where a module within another has no weight of its own."""

    def load(self: Any, state: Any, prefix: str, *others: Any) -> None:
        table = "_load_state_dict_pre_hooks"
        hooks = vars(self)[table]
        if not prefix or "weight" in self._parameters:
            return original(self, state, prefix, *others)
        for hook in hooks.values():
            hook(OrderedDict(state), prefix, *others)
        vars(self)[table] = OrderedDict()
        try:
            original(self, state, prefix, *others)
        finally:
            vars(self)[table] = hooks

    return load


def _holds(name: str, table: str, module: Any) -> bool:
    """Whether a module holds something by that name in a table."""
    return name in vars(module).get(table, ())


def _is_observed(module: Any) -> bool:
    return "activation_post_process" in vars(module)["_modules"]


def _is_traced(module: Any) -> bool:
    return isinstance(module, GraphModule)


def _is_trained_to_be_quantised(module: Any) -> bool:
    return hasattr(module, "weight_fake_quant")


def on_hosts(
    what: str, patch: Callable[[], AbstractContextManager[None]], *hosts: str, clause: str = "HO-03", since: str = "2.1"
) -> Fault:
    """A fault that a clause sees on each of some hosts."""
    return Fault(f"hosts: {what}", patch, (clause,), kinds=(), since=since, hosts=hosts)


FAULTS = (
    on_hosts(
        "a parametrized module takes no forward hooks",
        lambda: _where(partial(_holds, "parametrizations", "_modules")),
        "parametrized",
    ),
    on_hosts(
        "what was normed takes no forward hooks", lambda: _deaf(nn.utils, "remove_weight_norm"), "weight_norm, undone"
    ),
    on_hosts(
        "what has a weight norm takes no pre-hooks",
        lambda: _where(partial(_holds, "weight_g", "_parameters"), "register_forward_pre_hook"),
        "weight_norm",
    ),
    on_hosts("what was lazy takes no forward hooks", lambda: _deaf(LazyModuleMixin, "_infer_parameters"), "was lazy"),
    on_hosts(
        "what is still lazy takes no forward hooks",
        lambda: _where(lambda m: type(m).__name__ == "LazyLinear"),
        "still lazy",
    ),
    on_hosts("what was fused takes no forward hooks", lambda: _deaf(fusion, "fuse_linear_bn_eval"), "fused layers"),
    on_hosts(
        "a replica takes no full backward hooks",
        lambda: _where(lambda module: "_is_replica" in vars(module), "register_full_backward_hook"),
        "replica",
    ),
    on_hosts("a ScriptModule loses forward hooks", _silently("register_forward_hook"), "ScriptModule"),
    on_hosts(
        "a call of one's own goes past pre-hooks", lambda: replaced(MODULE, "_call_impl", _own_call), "own methods"
    ),
    on_hosts(
        "a module takes no hooks once all were removed",
        lambda: once(MODULE, REGISTERING, "_forward_hooks"),
        "hooked before",
    ),
    on_hosts("what was pruned is saved past its hooks", _pruning, "pruned, undone"),
    on_hosts(
        "what is pruned takes no forward hooks", lambda: _where(partial(_holds, "weight_mask", "_buffers")), "pruned"
    ),
    on_hosts(
        "what is spectrally normed takes no forward hooks", lambda: _deaf(nn.utils, "spectral_norm"), "spectral_norm"
    ),
    on_hosts(
        "what was spectrally normed takes no forward hooks",
        lambda: _deaf(nn.utils, "remove_spectral_norm"),
        "spectral_norm, undone",
    ),
    on_hosts(
        "what has a parametrized norm takes no forward hooks",
        lambda: _deaf(parametrizations, "spectral_norm"),
        "parametrizations.spectral_norm",
    ),
    on_hosts(
        "what was normed by a parametrization takes no forward hooks",
        lambda: _deaf(parametrize, "remove_parametrizations"),
        "parametrized, undone",
    ),
    on_hosts("what is observed takes no forward hooks", lambda: _where(_is_observed), "prepared to be quantised"),
    on_hosts(
        "what is trained to be quantised takes no pre-hooks",
        lambda: _where(_is_trained_to_be_quantised, "register_forward_pre_hook"),
        "prepared to be trained",
    ),
    on_hosts(
        "a SyncBatchNorm takes no forward hooks",
        lambda: _where(lambda m: isinstance(m, nn.SyncBatchNorm)),
        "SyncBatchNorm-converted",
    ),
    on_hosts(
        "an average takes no full backward pre-hooks",
        lambda: _where(lambda m: isinstance(m, AveragedModel), "register_full_backward_pre_hook"),
        "AveragedModel",
    ),
    on_hosts(
        "a deep copy takes no forward hooks", lambda: where_marked(marking_copies(MODULE, shallow=False)), "deep copy"
    ),
    on_hosts(
        "a shallow copy takes no forward hooks",
        lambda: where_marked(marking_copies(MODULE, shallow=True)),
        "shallow copy",
    ),
    on_hosts("what was unpickled takes no forward hooks", lambda: where_marked(marking_unpickled(MODULE)), "unpickled"),
    on_hosts(
        "a GraphModule takes no pre-hooks", lambda: _where(_is_traced, "register_forward_pre_hook"), "GraphModule"
    ),
    on_hosts(
        "an OptimizedModule takes no forward hooks", lambda: _where(_is_compiled), "OptimizedModule", clause="HO-07"
    ),
    on_hosts(
        "an OptimizedModule forgets that a pre-hook was removed",
        lambda: _irremovable(_is_compiled, "register_forward_pre_hook"),
        "OptimizedModule",
        clause="HO-07",
    ),
    on_hosts(
        "an OptimizedModule takes no full backward pre-hooks",
        lambda: _where(_is_compiled, "register_full_backward_pre_hook"),
        "OptimizedModule",
        clause="HO-07",
    ),
    on_hosts(
        "what is compiled in place is called past its hooks",
        lambda: replaced(MODULE, "compile", _compiled_without_its_hooks),
        "Module.compile",
        clause="HO-07",
        since="2.4",
    ),
    on_hosts(
        "an OptimizedModule of a container takes no pre-hooks",
        lambda: _where(lambda module: _is_compiled(module) and _has_parts(module), "register_forward_pre_hook"),
        "OptimizedModule of a container",
        clause="HO-07",
        since="2.4",
    ),
    on_hosts(
        "a container that is compiled in place is called past its hooks",
        lambda: replaced(MODULE, "compile", _containers_compiled_without_their_hooks),
        "Module.compile",
        clause="HO-07",
        since="2.4",
    ),
    on_hosts(
        "hooks before loading edit a copy where a module has no weight of its own",
        lambda: replaced(MODULE, "_load_from_state_dict", _editing_copies),
        "parametrized",
        "pruned",
        "spectral_norm",
        "parametrizations.spectral_norm",
        "weight_norm",
    ),
    on_hosts("averages are called past their hooks", _averages_called_plainly, clause="HO-05"),
    on_hosts("full hooks go as nothing refers to the module", _held_weakly, clause="HO-05"),
)
