"""Faults in what states do to modules and optimizers: sizes, keys, and steps beside those of training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch import nn

from ..engine import Fault, replaced
from ..registering import edited
from .state_dict_hooks import Patch


def _lost() -> Patch:
    """A lazy module that loads a state has zeros instead."""

    def make(original: Any) -> Any:
        def load(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            state = {key: torch.zeros_like(value) for key, value in state_dict.items()}
            return original(self, state, *args, **kwargs)

        return load

    return replaced(nn.Module, "load_state_dict", make)


def _unheard() -> Patch:
    """A key of no dot that does not fit is passed over."""

    def make(original: Any) -> Any:
        def load(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            return original(self, {key: value for key, value in state_dict.items() if "." in key}, *args, **kwargs)

        return load

    return replaced(nn.Module, "load_state_dict", make)


def _stepping(name: str) -> Patch:
    """What collects the state of an optimizer steps it, also one that has a state."""

    def make(original: Any) -> Any:
        def collect(net: Any, optimizer: Any, **kwargs: Any) -> Any:
            optimizer.step()
            return original(net, optimizer, **kwargs)

        return collect

    return replaced(import_module("torch.distributed.checkpoint.state_dict"), name, make)


LAZY: Any = nn.modules.lazy.LazyModuleMixin

IN_STATE_DICT = """    for hook in self._state_dict_pre_hooks.values():
        hook(self, prefix, keep_vars)
    self._save_to_state_dict"""
"""Where hooks before ``state_dict`` are called, in its text."""


@contextmanager
def _called_in_saving() -> Iterator[None]:
    """Hooks before ``state_dict`` are called in the common method that saves, as on torch 2.0."""

    def make(original: Any) -> Any:
        def save(self: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
            for hook in self._state_dict_pre_hooks.values():
                hook(self, prefix, keep_vars)
            return original(self, destination, prefix, keep_vars)

        return save

    moved = edited(nn.Module, "state_dict", (IN_STATE_DICT, "    self._save_to_state_dict"))
    with moved, replaced(nn.Module, "_save_to_state_dict", make):
        yield


FAULTS = (
    Fault(
        "hooks before state_dict are called in the common method that saves",
        _called_in_saving,
        ("SD-21",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "metadata come to a state dict when its hooks have run",
        lambda: edited(
            nn.Module,
            "state_dict",
            ("destination._metadata[prefix[:-1]] = local_metadata\n", "pass\n"),
            ("return destination", "destination._metadata[prefix[:-1]] = local_metadata\n    return destination"),
        ),
        ("SD-20",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "what is loaded has no metadata",
        lambda: edited(nn.Module, "load_state_dict", ("state_dict._metadata = metadata", "pass")),
        ("SD-20",),
        kinds=(),
        since="2.0",
    ),
    Fault("loading fills a lazy module with zeros", _lost, ("HT-14",), kinds=()),
    *(
        Fault(what, lambda name=name, change=change: edited(LAZY, name, change), ("HT-14",), (), "2.13")
        for what, name, change in (
            ("a lazy module saves no buffers", "_save_to_state_dict", ("in self._buffers.items()", "in ()")),
            ("a lazy module loads no lazy one", "_lazy_load_hook", ("if not is_lazy(input_param):", "if True:")),
        )
    ),
    Fault("keys without a dot are passed over", _unheard, ("SD-19",), (), "1.13"),
    *(
        Fault(f"{name} takes a step", lambda name=name: _stepping(name), ("SV-01",), (), "2.2")
        for name in ("get_optimizer_state_dict", "get_state_dict")
    ),
    Fault(
        "hooks on loading do not run where tensors are assigned",
        lambda: edited(
            nn.Module,
            "load_state_dict",
            (
                "module._load_state_dict_post_hooks.values()",
                "() if assign else module._load_state_dict_post_hooks.values()",
            ),
        ),
        ("SD-19",),
        since="2.1",
    ),
)
