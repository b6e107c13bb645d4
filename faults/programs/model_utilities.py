"""Faults in vectors of parameters and in packages, as hooks see them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, replaced
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
)
