"""Faults in what becomes of hooks where ``copy.copy`` or ``copy.deepcopy`` copies what carries them."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor
from torch.nn import Module, Parameter
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm
from torch.optim import Optimizer

from ..engine import Fault, added, replaced
from .serialization import TABLES
from .state_dict_hooks import Patch


def _deepcopies(table: Callable[[Any], Any]) -> Patch:
    """Has a deepcopy of a module have ``table(original table)`` for each table of hooks."""

    def deepcopy(self: Any, memo: Any) -> Any:
        new = memo[id(self)] = object.__new__(type(self))
        items = vars(self).items()
        new.__setstate__({k: table(v) if k in TABLES else copy.deepcopy(v, memo) for k, v in items})
        return new

    return added(Module, "__deepcopy__", deepcopy)


def _shallow_copies_of_tables() -> Patch:
    def shallow(self: Any) -> Any:
        new = object.__new__(type(self))
        new.__setstate__({k: copy.copy(v) if k in TABLES else v for k, v in vars(self).items()})
        return new

    return added(Module, "__copy__", shallow)


def _parameters_keep_hooks() -> Patch:
    def make(original: Any) -> Any:
        def deepcopy(self: Any, memo: Any) -> Any:
            new = original(self, memo)
            for hook in (self._backward_hooks or {}).values():
                new.register_hook(hook)
            return new

        return deepcopy

    return replaced(Parameter, "__deepcopy__", make)


def _spectral_norm_computes_at_once() -> Patch:
    def make(original: Any) -> Any:
        def apply(module: Any, name: str, *others: Any) -> Any:
            hook = original(module, name, *others)
            setattr(module, name, 1 * getattr(module, f"{name}_orig"))
            return hook

        return staticmethod(apply)

    return replaced(SpectralNorm, "apply", make)


def _tensors_take_memory() -> Patch:
    return replaced(Tensor, "__deepcopy__", lambda original: lambda self, memo: original(self.clone().detach(), {}))


def _tensors_lose_attributes() -> Patch:
    def make(original: Any) -> Any:
        def reduce(self: Any, protocol: Any) -> Any:
            vars(self).clear()
            return original(self, protocol)

        return reduce

    return replaced(Tensor, "__reduce_ex__", make)


def _tensors_lose_gradients() -> Patch:
    def make(original: Any) -> Any:
        def deepcopy(self: Any, memo: Any) -> Any:
            new = original(self, memo)
            new.grad = None
            return new

        return deepcopy

    return replaced(Tensor, "__deepcopy__", make)


def _without_pre_hooks(original: Any) -> Any:
    """What takes the state of a pickle leaves forward pre-hooks out of it."""

    def setstate(self: Any, state: Any) -> None:
        original(self, {**state, "_forward_pre_hooks": OrderedDict()})

    return setstate


def _copies_step_plainly() -> Patch:
    """A copy of an optimizer steps past its hooks."""

    def make(original: Any) -> Any:
        def restore(self: Any, state: Any) -> None:
            original(self, state)
            self.step = partial(type(self).step.__wrapped__, self)

        return restore

    return replaced(Optimizer, "__setstate__", make)


FAULTS = (
    Fault("a copy of an optimizer steps past its hooks", _copies_step_plainly, ("SZ-34",), kinds=(), since="2.0"),
    Fault("deepcopy shares tables of hooks", lambda: _deepcopies(lambda table: table), ("SZ-20", "U-13"), kinds=()),
    Fault(
        "deepcopy leaves hooks out",
        lambda: _deepcopies(lambda table: OrderedDict()),
        ("SZ-05", "SZ-20", "SZ-21", "SZ-22", "U-13"),
        kinds=(),
    ),
    Fault("deepcopy copies tables but no hooks", lambda: _deepcopies(copy.copy), ("SZ-22",), kinds=()),
    Fault("copy gives a module tables of its own", _shallow_copies_of_tables, ("SZ-23",), kinds=()),
    Fault("deepcopy takes a parameter's hooks along", _parameters_keep_hooks, ("SZ-24", "U-13"), kinds=()),
    Fault(
        "weight_norm computes no weight",
        lambda: replaced(WeightNorm, "__call__", lambda original: lambda self, module, args: None),
        ("SZ-26", "PN-02"),
        kinds=(),
    ),
    Fault("spectral_norm has a weight that is no leaf at once", _spectral_norm_computes_at_once, ("SZ-25",), kinds=()),
    Fault("deepcopy of a tensor takes memory of its own", _tensors_take_memory, ("SZ-32",), kinds=(), since="1.13"),
    Fault("a tensor is pickled without attributes", _tensors_lose_attributes, ("SZ-33",), kinds=(), since="2.0"),
    Fault("deepcopy of a tensor has no gradient", _tensors_lose_gradients, ("SZ-30",), kinds=(), since="1.13"),
    Fault(
        "a module from a pickle computes no weight",
        lambda: replaced(Module, "__setstate__", _without_pre_hooks),
        ("SZ-31",),
        kinds=(),
    ),
)
