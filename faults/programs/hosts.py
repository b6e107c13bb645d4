"""Faults in what makes modules of modules: the host forgets a table of hooks, or leaves one of its own behind."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch import nn
from torch.nn.utils import prune
from torch.optim import swa_utils

from hookcheck.programs.host_changes import quantization

from ..engine import Fault, replaced
from .state_dict_hooks import Patch


def _forgetting(owner: Any, name: str, table: str) -> Patch:
    """What is done to a module empties one of its tables, or of that of what is made."""

    def make(original: Any) -> Any:
        def change(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(module, *args, **kwargs)
            vars(result if isinstance(result, nn.Module) else module)[table] = type(module._forward_hooks)()
            return result

        return change

    return replaced(owner, name, make)


def _looking_for_hooks(owner: Any, name: str) -> Patch:
    """What makes a module of another looks for a table of hooks that modules do not have."""
    return replaced(owner, name, lambda _: lambda module, *args, **kwargs: module._hooks_of_forward)


def _left_behind() -> Patch:
    """The way back from weight_norm leaves a pre-hook."""

    def make(original: Any) -> Any:
        def remove(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(module, *args, **kwargs)
            module.register_forward_pre_hook(lambda *_: None)
            return result

        return remove

    return replaced(nn.utils, "remove_weight_norm", make)


def _doubling() -> Patch:
    """What AveragedModel copies has each forward hook twice."""

    def make(original: Any) -> Any:
        def init(self: Any, model: Any, *args: Any, **kwargs: Any) -> None:
            original(self, model, *args, **kwargs)
            for module in self.module.modules():
                for hook in [*module._forward_hooks.values()]:
                    module.register_forward_hook(hook)

        return init

    return replaced(swa_utils.AveragedModel, "__init__", make)


def _copied_without_hooks() -> Patch:
    """A deepcopy of a parametrized module has none of its forward hooks."""
    parametrize = import_module("torch.nn.utils.parametrize")

    def make(original: Any) -> Any:
        def inject(module: Any) -> None:
            original(module)
            parametrized = type(module)
            copied = parametrized.__deepcopy__

            def forgetting(self: Any, memo: Any) -> Any:
                result = copied(self, memo)
                vars(result)["_forward_hooks"] = type(self._forward_hooks)()
                return result

            parametrized.__deepcopy__ = forgetting

        return inject

    return replaced(parametrize, "_inject_new_class", make)


def _of_averages(change: Callable[[Any], None]) -> Patch:
    """What AveragedModel copies has something done to each of its modules."""

    def make(original: Any) -> Any:
        def init(self: Any, model: Any, *args: Any, **kwargs: Any) -> None:
            original(self, model, *args, **kwargs)
            for module in self.module.modules():
                change(module)

        return init

    return replaced(swa_utils.AveragedModel, "__init__", make)


def _without_prepending(module: Any) -> None:
    table = module._backward_hooks
    for key in sorted(table):
        table.move_to_end(key)


def _without_modules(module: Any) -> None:
    for wrapped in module._load_state_dict_pre_hooks.values():
        wrapped.with_module = False


def _copying_parameters(owner: Any, name: str) -> Patch:
    """What a function gives, or was given, has other parameters of the same numbers."""

    def make(original: Any) -> Any:
        def change(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            for module in (result if isinstance(result, nn.Module) else args[0]).modules():
                for key, parameter in module._parameters.items():
                    module._parameters[key] = None if parameter is None else nn.Parameter(parameter.detach().clone())
            return result

        return change

    return replaced(owner, name, make)


def _copied_with_their_hooks() -> Patch:
    """A deepcopy of a parameter has its hooks."""

    def make(original: Any) -> Any:
        def copied(self: Any, memo: Any) -> Any:
            result = original(self, memo)
            if self._backward_hooks:
                for hook in self._backward_hooks.values():
                    result.register_hook(hook)
            return result

        return copied

    return replaced(nn.Parameter, "__deepcopy__", make)


def _compiled_called_past_its_hooks() -> Patch:
    """What torch.compile makes of a module is called past its own hooks."""
    owner = import_module("torch._dynamo.eval_frame").OptimizedModule
    return replaced(owner, "__call__", lambda _: lambda self, *args, **kwargs: self.forward(*args, **kwargs))


@contextmanager
def _copied_without_what_saves(kind: Any) -> Iterator[None]:
    """A shallow copy of a module of that kind has no hooks on state dicts."""

    def copied(module: Any) -> Any:
        result = object.__new__(type(module))
        vars(result).update(vars(module))
        for table in ("_state_dict_hooks", "_load_state_dict_pre_hooks"):
            vars(result)[table] = type(vars(module)[table])()
        return result

    kind.__copy__ = copied
    try:
        yield
    finally:
        del kind.__copy__


def _unparametrized(change: Callable[[Any, Any], None]) -> Patch:
    """Taking parametrizations off ends with ``change(module, what it held before)``."""
    parametrize = import_module("torch.nn.utils.parametrize")

    def make(original: Any) -> Any:
        def remove(module: Any, name: str, leave_parametrized: bool = True) -> Any:
            before = (type(module), module.parametrizations)
            result = original(module, name, leave_parametrized)
            change(module, before)
            return result

        return remove

    return replaced(parametrize, "remove_parametrizations", make)


def _with_another_weight(module: Any, before: Any) -> None:
    module.weight = nn.Parameter(module.weight.detach().clone())


def _with_its_class(module: Any, before: Any) -> None:
    module.__class__ = before[0]


def _with_its_list(module: Any, before: Any) -> None:
    module.parametrizations = before[1]


@contextmanager
def _compiled_copies_share_hooks() -> Iterator[None]:
    """A deep copy of what torch.compile makes of a module has the table of forward hooks of the original."""
    kind = import_module("torch._dynamo.eval_frame").OptimizedModule

    def copied(module: Any, memo: Any) -> Any:
        result = object.__new__(type(module))
        memo[id(module)] = result
        result.__setstate__(copy.deepcopy(module.__getstate__(), memo))
        vars(result)["_forward_hooks"] = vars(module)["_forward_hooks"]
        return result

    kind.__deepcopy__ = copied
    try:
        yield
    finally:
        del kind.__deepcopy__


def _sharing_hooks(inject: Any) -> Any:
    """Gives a module the class of one that is parametrized, whose deep copies have its table of forward hooks."""

    def injected(module: Any) -> None:
        inject(module)
        copied = type(module).__deepcopy__

        def copy(module: Any, memo: Any) -> Any:
            result = copied(module, memo)
            result._forward_hooks = module._forward_hooks
            return result

        type(module).__deepcopy__ = copy

    return injected


def _sharing(table: str) -> Patch:
    """A replica has a table of the module that it is made of, rather than one of its own."""

    def make(original: Any) -> Any:
        def replicate(self: Any) -> Any:
            replica = original(self)
            vars(replica)[table] = vars(self)[table]
            return replica

        return replicate

    return replaced(nn.Module, "_replicate_for_data_parallel", make)


def _fused_with_more_hooks() -> Patch:
    """What is fused has each pre-hook of the first module twice."""

    def make(original: Any) -> Any:
        def helper(model: Any, names: Any, is_qat: bool, fuse: Any, *others: Any) -> None:
            def fused(modules: list[Any], *more: Any) -> Any:
                hooks = [*modules[0]._forward_pre_hooks.values()]
                result = fuse(modules, *more)
                for hook in hooks:
                    result[0].register_forward_pre_hook(hook)
                return result

            original(model, names, is_qat, fused, *others)

        return helper

    return replaced(import_module("torch.ao.quantization.fuse_modules"), "_fuse_modules_helper", make)


FAULTS = (
    Fault("deep copies of compiled modules share hooks", _compiled_copies_share_hooks, ("HO-01",), (), "2.6"),
    Fault(
        "fusing registers the pre-hooks of the first module twice",
        _fused_with_more_hooks,
        ("HO-01",),
        kinds=(),
        since="2.0",
    ),
    *(
        Fault(f"a replica shares {table}", lambda table=table: _sharing(table), ("HO-13",), kinds=())
        for table in ("_modules", "_parameters", "_buffers")
    ),
    Fault(
        "deep copies of what is parametrized share its forward hooks",
        lambda: replaced(import_module("torch.nn.utils.parametrize"), "_inject_new_class", _sharing_hooks),
        ("HO-01",),
        kinds=(),
        since="1.13",
    ),
    Fault(
        "weight_norm forgets forward hooks",
        lambda: _forgetting(nn.utils, "weight_norm", "_forward_hooks"),
        ("HO-01",),
        kinds=(),
    ),
    Fault(
        "a replica forgets hooks of state dicts",
        lambda: _forgetting(torch.nn.Module, "_replicate_for_data_parallel", "_state_dict_hooks"),
        ("HO-01",),
        kinds=(),
    ),
    *(
        Fault(f"{what} forgets {which}", lambda at=at, table=table: _forgetting(*at, table), ("HO-10",), (), "2.1")
        for what, at in (
            ("a replica", (nn.Module, "_replicate_for_data_parallel")),
            ("weight_norm", (nn.utils, "weight_norm")),
            ("removing a pruning", (prune, "remove")),
        )
        for which, table in (
            ("which hooks take keyword arguments", "_forward_hooks_with_kwargs"),
            ("which pre-hooks take keyword arguments", "_forward_pre_hooks_with_kwargs"),
            ("which hooks are always called", "_forward_hooks_always_called"),
        )
    ),
    Fault("averages order hooks by when they came", lambda: _of_averages(_without_prepending), ("HO-10",), (), "2.0"),
    Fault("averages load without modules", lambda: _of_averages(_without_modules), ("HO-10",), (), "2.0"),
    Fault(
        "spectral_norm makes another parameter",
        lambda: _copying_parameters(nn.utils, "spectral_norm"),
        ("HO-08",),
        kinds=(),
    ),
    *(
        Fault(f"{name} makes other parameters", lambda at=at: _copying_parameters(*at), ("HO-11",), kinds=())
        for name, *at in (
            ("convert_sync_batchnorm", nn.SyncBatchNorm, "convert_sync_batchnorm"),
            ("DataParallel", nn.DataParallel, "__init__"),
            ("prepare_qat in place", quantization(), "prepare_qat"),
        )
    ),
    Fault("hooks of a parameter go to its copy", _copied_with_their_hooks, ("HO-11",), kinds=()),
    Fault("a copy for averages has hooks twice", _doubling, ("HO-01",), kinds=()),
    Fault(
        "a replica looks for hooks that are not there",
        lambda: _looking_for_hooks(nn.Module, "_replicate_for_data_parallel"),
        ("HO-01",),
        kinds=(),
    ),
    Fault("a deepcopy of a parametrized module has no forward hooks", _copied_without_hooks, ("HO-01",), kinds=()),
    *(
        Fault(
            f"a shallow copy of {what} has no hooks on state dicts",
            lambda kind=kind: _copied_without_what_saves(kind),
            ("HO-01",),
            kinds=(),
        )
        for what, kind in (("DataParallel", nn.DataParallel), ("AveragedModel", swa_utils.AveragedModel))
    ),
    Fault("removing weight_norm leaves a pre-hook", _left_behind, ("HO-02",), kinds=()),
    Fault(
        "removing a pruning takes backward hooks along",
        lambda: _forgetting(prune, "remove", "_backward_hooks"),
        ("HO-02",),
        kinds=(),
    ),
    Fault("a compiled module is called past its hooks", _compiled_called_past_its_hooks, ("HO-06",), (), "2.1"),
    *(
        Fault(f"removing parametrizations leaves {what}", lambda change=change: _unparametrized(change), ids, (), "1.9")
        for what, change, ids in (
            ("another weight", _with_another_weight, ("HO-08",)),
            ("a module its class", _with_its_class, ("HO-02",)),
            ("a module their list", _with_its_list, ("HO-02",)),
        )
    ),
)
