"""Faults in how hooks are called where modules register parameters, buffers and submodules."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils import prune

from ..engine import Fault, replaced
from ..registering import edited, everywhere
from .state_dict_hooks import Patch, together


def _past_items() -> Patch:
    """Puts an item that is set in a container past its registration."""
    places = (
        (torch.nn.ModuleList, "str(idx), module", "modules"),
        (torch.nn.ParameterList, "str(idx), param", "parameters"),
    )
    return together(
        *(
            edited(owner, "__setitem__", (f"setattr(self, {item})", f"self._{table}.__setitem__({item})"))
            for owner, item, table in places
        )
    )


def _past_the_class() -> Patch:
    """A parameter that is assigned goes past a method of the class of its module."""

    def make(original: Any) -> Any:
        def put(self: Any, name: str, value: Any) -> None:
            if isinstance(value, torch.nn.Parameter):
                return torch.nn.Module.register_parameter(self, name, value)
            original(self, name, value)
            return None

        return put

    return replaced(torch.nn.Module, "__setattr__", make)


MODULES = "_global_module_registration_hooks"

FAULTS = (
    Fault("an assignment of a parameter goes past its class", _past_the_class, ("RG-07",), since="2.0"),
    Fault(
        "a parameter registration hook is skipped where a tensor is pruned",
        lambda: edited(
            prune.BasePruningMethod,
            "apply",
            ('module.register_parameter(name + "_orig", orig)', 'module._parameters[name + "_orig"] = orig'),
        ),
        ("RG-01",),
        since="2.0",
    ),
    Fault(
        "a parameter registration hook's result is ignored",
        lambda: edited(torch.nn.Module, "register_parameter", ("param = output", "pass")),
        ("RG-01", "RG-06"),
        since="2.0",
    ),
    Fault(
        "a parameter registration hook gets no module",
        lambda: everywhere("parameter_registration_hook", lambda hook: lambda module, *rest: hook(None, *rest)),
        ("RG-01",),
        since="2.0",
    ),
    Fault(
        "a buffer registration hook's result is ignored",
        lambda: edited(torch.nn.Module, "register_buffer", ("tensor = output", "pass")),
        ("RG-02",),
        since="2.0",
    ),
    Fault(
        "a buffer registration hook is skipped for buffers that are not persistent",
        lambda: edited(
            torch.nn.Module,
            "register_buffer",
            (
                "_global_buffer_registration_hooks.values()",
                "[*_global_buffer_registration_hooks.values()] * persistent",
            ),
        ),
        ("RG-02",),
        since="2.0",
    ),
    Fault(
        "a buffer registration hook is skipped for None",
        lambda: edited(torch.nn.Module, "register_buffer", ("output = hook(", "output = tensor is not None and hook(")),
        ("RG-05",),
        since="2.0",
    ),
    Fault(
        "module registration hooks run in reverse order where a module is assigned",
        lambda: edited(torch.nn.Module, "__setattr__", (f"{MODULES}.values()", f"reversed({MODULES}.values())")),
        ("RG-04",),
        since="2.0",
    ),
    Fault(
        "a module registration hook is skipped by add_module",
        lambda: edited(torch.nn.Module, "add_module", ("_global_module_registration_hooks.values()", "()")),
        ("RG-03", "RG-04", "RG-05"),
        since="2.0",
    ),
    Fault(
        "a module registration hook is skipped by assignments",
        lambda: edited(torch.nn.Module, "__setattr__", ("_global_module_registration_hooks.values()", "()")),
        ("RG-03",),
        since="2.0",
    ),
    Fault(
        "a buffer that a registration hook returns is not saved",
        lambda: edited(
            torch.nn.Module,
            "register_buffer",
            ("tensor = output", "tensor, persistent = output, False"),
        ),
        ("RG-02",),
        since="2.0",
    ),
    Fault(
        "a buffer is there before its registration hooks are called",
        lambda: edited(
            torch.nn.Module,
            "register_buffer",
            ("for hook in _global_buffer", "self._buffers[name] = tensor\n        for hook in _global_buffer"),
        ),
        ("RG-04",),
        since="2.0",
    ),
    Fault(
        "a parameter registration hook is skipped where a tensor is parametrized",
        lambda: edited(
            torch.nn.utils.parametrize,
            "_register_parameter_or_buffer",
            ("module.register_parameter(name, X)", "module._parameters[name] = X"),
        ),
        ("RG-01",),
        since="2.0",
    ),
    Fault(
        "a parameter registration hook is skipped where loading assigns",
        lambda: edited(
            torch.nn.Module,
            "_load_from_state_dict",
            ("setattr(self, name, input_param)", "self.__dict__['_parameters'][name] = input_param"),
        ),
        ("RG-01",),
        since="2.1",
    ),
    Fault(
        "registration hooks are skipped where an item of a container is set",
        _past_items,
        ("RG-01", "RG-03"),
        since="2.0",
    ),
    Fault(
        "a buffer that is assigned anew is saved",
        lambda: edited(
            torch.nn.Module,
            "__setattr__",
            ("persistent = name not in self._non_persistent_buffers_set", "persistent = True"),
        ),
        ("RG-02",),
        since="2.5",
    ),
    Fault(
        "parameter registration hooks are skipped for what requires no grad",
        lambda: edited(
            torch.nn.Module,
            "register_parameter",
            (
                "_global_parameter_registration_hooks.values()",
                "_global_parameter_registration_hooks.values() if param.requires_grad else ()",
            ),
        ),
        ("RG-01",),
        since="2.0",
    ),
)
