"""Faults in what becomes of hooks on parameters whose module is converted, loaded, frozen or given another."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import Module, Parameter
from torch.utils.hooks import RemovableHandle

from ..engine import Fault, added, replaced
from ..registering import edited
from .state_dict_hooks import Patch


def hooks_of(parameter: Any) -> list[Any]:
    return list((parameter._backward_hooks or {}).values())


def _with_hooks(original: Any) -> Any:
    """Makes a parameter with the hooks of what it is made of."""

    def new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        parameter = original(cls, data, requires_grad)
        for hook in hooks_of(data) if isinstance(data, Parameter) else ():
            parameter.register_hook(hook)
        return parameter

    return new


@contextmanager
def _conversion_makes_parameters() -> Iterator[None]:
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        yield
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)


def _data_drops_hooks() -> Patch:
    data = torch.Tensor.data

    def put(self: Any, value: Any) -> None:
        data.__set__(self, value)
        (self._backward_hooks or {}).clear()

    return added(Parameter, "data", property(data.__get__, put))


def _freezing_drops_hooks() -> Patch:
    def make(original: Any) -> Any:
        def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
            for parameter in self.parameters():
                (parameter._backward_hooks or {}).clear()
            return original(self, requires_grad)

        return requires_grad_

    return replaced(Module, "requires_grad_", make)


def _hooks_go_to_the_next() -> Patch:
    def make(original: Any) -> Any:
        def register_parameter(self: Any, name: str, parameter: Any) -> None:
            for hook in hooks_of(self._parameters[name]) if self._parameters.get(name) is not None else ():
                parameter.register_hook(hook)
            original(self, name, parameter)

        return register_parameter

    return replaced(Module, "register_parameter", make)


def _swapping_keeps_hooks() -> Patch:
    def make(original: Any) -> Any:
        def swap(first: Any, second: Any) -> None:
            hooks = hooks_of(first)
            original(first, second)
            first._backward_hooks = None  # torch leaves the table, which is the other's by now
            for hook in hooks:
                first.register_hook(hook)

        return swap

    return replaced(torch.utils, "swap_tensors", make)


def _unpickling_makes_tables() -> Patch:
    def make(original: Any) -> Any:
        def rebuild(*args: Any) -> Any:
            parameter = original(*args)
            parameter._post_accumulate_grad_hooks = OrderedDict()
            return parameter

        return rebuild

    return replaced(torch._utils, "_rebuild_parameter", make)


def _left_behind(name: str) -> Patch:
    """What a method makes of a tensor that has hooks leads to it no more."""

    def make(original: Any) -> Any:
        def made_anew(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            return result.detach().requires_grad_() if self._backward_hooks else result

        return made_anew

    return replaced(torch.Tensor, name, make)


FAULTS = (
    *(
        Fault(
            f"{name} leaves a tensor behind that has hooks", lambda name=name: _left_behind(name), ("PH-12",), kinds=()
        )
        for name in ("contiguous", "to")
    ),
    Fault("conversions make new parameters", _conversion_makes_parameters, ("PH-01", "U-14"), kinds=()),
    Fault("setting .data drops hooks", _data_drops_hooks, ("PH-01", "PH-02", "U-14"), kinds=()),
    Fault(
        "loading always assigns",
        lambda: replaced(
            Module,
            "load_state_dict",
            lambda original: lambda self, state, strict=True, assign=False: original(self, state, strict, True),
        ),
        ("PH-03", "PH-11"),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "loading that assigns thaws a weight",
        lambda: edited(
            Module, "_load_from_state_dict", ("input_param, requires_grad=param.requires_grad", "input_param")
        ),
        ("U-14",),
        kinds=(),
        since="2.3",
    ),
    Fault("freezing a module drops its parameters' hooks", _freezing_drops_hooks, ("PH-04",), kinds=()),
    Fault("parameters take the hooks of what they replace", _hooks_go_to_the_next, ("PH-05", "U-14"), kinds=()),
    Fault("swapping parameters keeps hooks", _swapping_keeps_hooks, ("PH-06",), kinds=(), since="2.3"),
    Fault(
        "swapping thaws parameters",
        lambda: edited(
            Module,
            "_apply",
            ("requires_grad=param.requires_grad,", "requires_grad=True,"),
        ),
        ("PH-06",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "swapping marks the first of two tensors alone",
        lambda: edited(torch.utils, "swap_tensors", ("check_use_count(t2", "(lambda *_: None)(t2")),
        ("PH-06",),
        kinds=(),
        since="2.3",
    ),
    Fault(
        "parameters have hooks that are not called",
        lambda: added(Parameter, "register_hook", lambda self, hook: RemovableHandle({})),
        ("PH-01", "PH-02", "PH-03", "PH-04", "PH-05", "PH-07", "PH-08", "PH-09", "PH-10"),
        kinds=(),
    ),
    Fault(
        "a parameter from a pickle has a table of post-accumulate-grad hooks",
        _unpickling_makes_tables,
        ("PH-07",),
        kinds=(),
        since="2.3",
    ),
    Fault(
        "a gradient stays what it is where its parameter is converted",
        lambda: edited(torch.nn.Module, "_apply", ("grad_applied = fn(param_grad)", "grad_applied = param_grad")),
        ("PH-01",),
        since="2.1",
    ),
    Fault(
        "a parameter that is made of another has its hooks",
        lambda: replaced(Parameter, "__new__", _with_hooks),
        ("PH-05",),
    ),
)
