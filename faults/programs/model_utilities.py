"""Faults in vectors of parameters and in packages, as hooks see them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch.nn.utils import prune

from ..engine import Fault, replaced
from ..registering import edited
from .state_dict_hooks import Patch


def _without_hooks(original: Any) -> Any:
    """What is loaded from a package has no forward hooks."""

    def load(self: Any, *args: Any, **options: Any) -> Any:
        result = original(self, *args, **options)
        result._forward_hooks.clear()
        return result

    return load


def _loading() -> Patch:
    return replaced(import_module("torch.package").PackageImporter, "load_pickle", _without_hooks)


def _sorting(original: Any) -> Any:
    """Puts what a prefix was taken off in the order of the names."""

    def consume(state: Any, prefix: str) -> None:
        original(state, prefix)
        for key in sorted(state):
            state[key] = state.pop(key)

    return consume


def _first(original: Any) -> Any:
    """Puts a parameter that is pruned no more before the others."""

    def remove(module: Any, name: str) -> Any:
        original(module, name)
        others = {key: module._parameters.pop(key) for key in [*module._parameters] if key != name}
        module._parameters.update(others)
        return module

    return remove


FAULTS = (
    Fault(
        "a vector of parameters has them doubled",
        lambda: replaced(
            torch.nn.utils, "parameters_to_vector", lambda original: lambda given: original(2 * one for one in given)
        ),
        ("MU-08",),
        kinds=(),
    ),
    Fault("a package loses forward hooks", _loading, ("MU-09",), kinds=(), since="1.9"),
    Fault(
        "a prefix is taken off in another order",
        lambda: replaced(import_module("torch.nn.modules.utils"), "consume_prefix_in_state_dict_if_present", _sorting),
        ("MU-10",),
        kinds=(),
        since="2.3",
    ),
    Fault(
        "a state goes into a dict of its own",
        lambda: replaced(torch.nn.Module, "state_dict", lambda original: lambda self, *args, **options: original(self)),
        ("MU-11",),
        kinds=(),
    ),
    Fault("what was pruned comes first", lambda: replaced(prune, "remove", _first), ("PN-03",), kinds=()),
    Fault(
        "what a state is saved of is no copy",
        lambda: edited(torch.nn.Module, "_save_to_state_dict", ("buf.detach()", "buf"), ("param.detach()", "param")),
        ("MU-11",),
        kinds=(),
    ),
)
