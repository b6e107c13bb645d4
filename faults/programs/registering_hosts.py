"""Faults that only some host shows: hooks that its registering of parameters and modules goes past."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torch import nn
from torch.nn.utils import prune
from torch.optim.swa_utils import AveragedModel

from ..engine import Fault, replaced
from ..registering import edited
from .clauses_on_hosts import on_hosts


def _past_hooks(kind: str, test: Callable[[Any], bool], name: str) -> Callable[[], AbstractContextManager[None]]:
    """A method that registers goes past the hooks on what is of that kind, where a module is such."""
    hooks = getattr(nn.modules.module, f"_global_{kind}_registration_hooks", {})

    def make(original: Any) -> Any:
        def register(self: Any, *args: Any) -> None:
            left_out = {**hooks} if test(self) else {}
            for key in left_out:
                del hooks[key]
            try:
                original(self, *args)
            finally:
                hooks.update(left_out)

        return register

    return lambda: replaced(nn.Module, name, make)


FAULTS: tuple[Fault, ...] = (
    on_hosts(
        "a replica takes parameters past registration hooks",
        _past_hooks("parameter", lambda module: "_is_replica" in vars(module), "register_parameter"),
        "replica",
    ),
    on_hosts(
        "an average takes modules past registration hooks",
        _past_hooks("module", lambda module: isinstance(module, AveragedModel), "__setattr__"),
        "AveragedModel",
    ),
    on_hosts(
        "a parameter that is no longer pruned goes past registration hooks",
        lambda: edited(
            prune.BasePruningMethod,
            "remove",
            ("setattr(module, self._tensor_name, orig)", "module._parameters[self._tensor_name] = orig"),
        ),
        "pruned, undone",
    ),
)
