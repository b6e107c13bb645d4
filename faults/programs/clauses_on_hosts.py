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

MODULE, OPTIMIZER, HANDLE = nn.Module, torch.optim.Optimizer, torch.utils.hooks.RemovableHandle
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


def _is_marked(module: Any) -> bool:
    return "marked" in vars(module)


@contextmanager
def _deaf(owner: Any, name: str) -> Iterator[None]:
    """Registering a forward hook does nothing on what a function was given or gave."""
    with _marking(owner, name), _where(_is_marked):
        yield


@contextmanager
def _averages_called_plainly() -> Iterator[None]:
    with _marking(AveragedModel, "__init__"), _called_plainly(_is_marked):
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
        if _is_marked(self):
            self._state_dict_hooks.clear()
        return original(self, *args, **kwargs)

    return save


def _of_optimizers(test: Callable[[Any], bool], name: str) -> Callable[[], AbstractContextManager[None]]:
    """Registering a hook does nothing on an optimizer that is such."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, *args: Any, **options: Any) -> Any:
            return original(self, (lambda *_: None) if test(self) else hook, *args, **options)

        return register

    return lambda: replaced(OPTIMIZER, name, make)


def _silently(name: str) -> Callable[[], AbstractContextManager[None]]:
    """Registering on a ScriptModule does nothing, and refuses nothing."""
    methods = vars(torch.jit.RecursiveScriptModule)
    owner = torch.jit.RecursiveScriptModule if name in methods else torch.jit.ScriptModule
    return lambda: replaced(owner, name, lambda original: lambda self, hook, **options: HANDLE(OrderedDict()))


@contextmanager
def _pruning() -> Iterator[None]:
    with _marking(prune, "remove"), replaced(MODULE, "state_dict", _state_of_the_pruned):
        yield


@contextmanager
def _copies_deaf(shallow: bool) -> Iterator[None]:
    """Registering a forward hook does nothing on a shallow copy, or on a deep one."""

    def make(original: Any) -> Any:
        def reconstruct(copied: Any, memo: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(copied, memo, *args, **kwargs)
            if isinstance(result, nn.Module) and (memo is None) is shallow:
                vars(result)["marked"] = True
            return result

        return reconstruct

    with replaced(copy, "_reconstruct", make), _where(_is_marked):
        yield


@contextmanager
def _unpickled_deaf() -> Iterator[None]:
    """Registering a forward hook does nothing on a module that was pickled by itself."""

    def make(original: Any) -> Any:
        def loads(text: bytes) -> Any:
            result = original(text)
            if isinstance(result, nn.Module):
                vars(result)["marked"] = True
            return result

        return loads

    with replaced(pickle, "loads", make), _where(_is_marked):
        yield


@contextmanager
def _scheduled_deaf(name: str) -> Iterator[None]:
    """Registering a step post-hook does nothing on an optimizer under a scheduler of that name."""

    def make(original: Any) -> Any:
        def init(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(self, optimizer, *args, **kwargs)
            vars(optimizer)["marked"] = True

        return init

    scheduler = getattr(torch.optim.lr_scheduler, name)
    with replaced(scheduler, "__init__", make), _of_optimizers(_is_marked, "register_step_post_hook")():
        yield


def _is_observed(module: Any) -> bool:
    return "activation_post_process" in vars(module)["_modules"]


def _is_traced(module: Any) -> bool:
    return isinstance(module, GraphModule)


def _is_trained_to_be_quantised(module: Any) -> bool:
    return hasattr(module, "weight_fake_quant")


@contextmanager
def _loaded_without_hooks() -> Iterator[None]:
    """Registering a step pre-hook does nothing on an optimizer that loaded a state."""

    def make(original: Any) -> Any:
        def load(self: Any, state: Any) -> None:
            original(self, state)
            vars(self)["marked"] = True

        return load

    with replaced(OPTIMIZER, "load_state_dict", make), _of_optimizers(_is_marked, "register_step_pre_hook")():
        yield


def _is_scheduled(optimizer: Any) -> bool:
    return hasattr(optimizer.step, "_wrapped_by_lr_sched")


def _is_of(name: str, optimizer: Any) -> bool:
    """Whether an optimizer is of a class of that name; torch imports some of them late."""
    return name in [kind.__name__ for kind in type(optimizer).__mro__]


def _without_a_word(name: str) -> AbstractContextManager[None]:
    """Registering a step pre-hook on an optimizer of a class of that name gives a handle and does nothing."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any) -> Any:
            return HANDLE(OrderedDict()) if _is_of(name, self) else original(self, hook)

        return register

    return replaced(OPTIMIZER, "register_step_pre_hook", make)


def _fault(
    what: str,
    patch: Callable[[], AbstractContextManager[None]],
    clause: str = "HO-03",
    since: str = "2.1",
    hosts: tuple[str, ...] = (),
) -> Fault:
    return Fault(f"hosts: {what}", patch, (clause,), kinds=(), since=since, hosts=hosts)


FAULTS = (
    _fault(
        "a parametrized module takes no forward hooks",
        lambda: _where(lambda module: "parametrizations" in vars(module)["_modules"]),
        hosts=("parametrized", "parametrizations.spectral_norm"),
    ),
    _fault(
        "what was normed takes no forward hooks",
        lambda: _deaf(nn.utils, "remove_weight_norm"),
        hosts=("weight_norm, undone",),
    ),
    _fault(
        "what was lazy takes no forward hooks", lambda: _deaf(LazyModuleMixin, "_infer_parameters"), hosts=("was lazy",)
    ),
    _fault(
        "what is still lazy takes no forward hooks",
        lambda: _where(lambda m: type(m).__name__ == "LazyLinear"),
        hosts=("still lazy",),
    ),
    _fault(
        "what was fused takes no forward hooks", lambda: _deaf(fusion, "fuse_linear_bn_eval"), hosts=("fused layers",)
    ),
    _fault(
        "a replica takes no full backward hooks",
        lambda: _where(lambda module: "_is_replica" in vars(module), "register_full_backward_hook"),
        hosts=("replica",),
    ),
    _fault("a ScriptModule loses forward hooks", _silently("register_forward_hook"), hosts=("ScriptModule",)),
    _fault(
        "a call of one's own goes past pre-hooks",
        lambda: replaced(MODULE, "_call_impl", _own_call),
        hosts=("own methods",),
    ),
    _fault("what was pruned is saved past its hooks", _pruning, hosts=("pruned, undone",)),
    _fault(
        "foreach loses step hooks",
        _of_optimizers(lambda optimizer: bool(optimizer.defaults.get("foreach")), "register_step_pre_hook"),
        "HO-04",
    ),
    _fault(
        "a fused optimizer loses hooks on its state",
        _of_optimizers(lambda optimizer: bool(optimizer.defaults.get("fused")), "register_state_dict_post_hook"),
        "HO-04",
        since="2.4",
    ),
    _fault(
        "what is spectrally normed takes no forward hooks",
        lambda: _deaf(nn.utils, "spectral_norm"),
        hosts=("spectral_norm",),
    ),
    _fault(
        "what has a parametrized norm takes no forward hooks",
        lambda: _deaf(parametrizations, "spectral_norm"),
        hosts=("parametrizations.spectral_norm",),
    ),
    _fault(
        "what was normed by a parametrization takes no forward hooks",
        lambda: _deaf(parametrize, "remove_parametrizations"),
        hosts=("parametrized, undone",),
    ),
    _fault(
        "what is observed takes no forward hooks", lambda: _where(_is_observed), hosts=("prepared to be quantised",)
    ),
    _fault(
        "what is trained to be quantised takes no pre-hooks",
        lambda: _where(_is_trained_to_be_quantised, "register_forward_pre_hook"),
        hosts=("prepared to be trained",),
    ),
    _fault(
        "a SyncBatchNorm takes no forward hooks",
        lambda: _where(lambda m: isinstance(m, nn.SyncBatchNorm)),
        hosts=("SyncBatchNorm-converted",),
    ),
    _fault(
        "an average takes no full backward pre-hooks",
        lambda: _where(lambda m: isinstance(m, AveragedModel), "register_full_backward_pre_hook"),
        hosts=("AveragedModel",),
    ),
    _fault(
        "under a scheduler hooks on the state are lost",
        _of_optimizers(_is_scheduled, "register_load_state_dict_post_hook"),
        "HO-04",
    ),
    *(
        _fault(f"an optimizer under {name} takes no step post-hooks", partial(_scheduled_deaf, name), "HO-04")
        for name in ("StepLR", "LambdaLR", "ReduceLROnPlateau")
    ),
    _fault("a deep copy takes no forward hooks", lambda: _copies_deaf(shallow=False), hosts=("deep copy",)),
    _fault("a shallow copy takes no forward hooks", lambda: _copies_deaf(shallow=True), hosts=("shallow copy",)),
    _fault("what was unpickled takes no forward hooks", _unpickled_deaf, hosts=("unpickled",)),
    _fault(
        "a GraphModule takes no pre-hooks",
        lambda: _where(_is_traced, "register_forward_pre_hook"),
        hosts=("GraphModule",),
    ),
    _fault("what loaded a state takes no step hooks", _loaded_without_hooks, "HO-04"),
    _fault(
        "a ZeroRedundancyOptimizer takes no step post-hooks",
        _of_optimizers(partial(_is_of, "ZeroRedundancyOptimizer"), "register_step_post_hook"),
        "HO-09",
    ),
    _fault(
        "a ZeroRedundancyOptimizer is saved past its hooks",
        _of_optimizers(partial(_is_of, "ZeroRedundancyOptimizer"), "register_state_dict_pre_hook"),
        "HO-09",
    ),
    *(
        _fault(f"a {name} loses step hooks without a word", partial(_without_a_word, name), "HO-09")
        for name in ("PostLocalSGDOptimizer", "_NamedOptimizer")
    ),
    _fault("averages are called past their hooks", _averages_called_plainly, "HO-05"),
    _fault("full hooks go as nothing refers to the module", _held_weakly, "HO-05"),
)
