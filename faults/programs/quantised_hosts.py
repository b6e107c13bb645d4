"""Faults that show on what is quantised, fused or wrapped, and on modules that live for one call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from torch import nn

from ..engine import Fault
from .clauses_on_hosts import _fault, _held_weakly, _where


def _is_from(place: str, name: str, module: Any) -> bool:
    """Whether the class of a module has that name and is from such a place in torch, which has moved."""
    return type(module).__name__ == name and place in type(module).__module__


def _of_class(place: str, name: str, registering: str) -> Callable[[], AbstractContextManager[None]]:
    return lambda: _where(partial(_is_from, place, name), registering)


FAULTS: tuple[Fault, ...] = (
    _fault(
        "what is quantised dynamically takes no forward hooks",
        _of_class("quantized.dynamic", "Linear", "register_forward_hook"),
        hosts=("quantised dynamically",),
    ),
    _fault(
        "what is quantised takes no full backward pre-hooks",
        _of_class("nn.quantized.modules.linear", "Linear", "register_full_backward_pre_hook"),
        hosts=("quantised",),
    ),
    _fault(
        "what fuse_modules fused takes no full backward hooks",
        _of_class("intrinsic", "ConvReLU2d", "register_full_backward_hook"),
        hosts=("fused by name",),
    ),
    _fault(
        "a DataParallel takes no pre-hooks",
        lambda: _where(lambda module: isinstance(module, nn.DataParallel), "register_forward_pre_hook"),
        hosts=("DataParallel",),
    ),
    _fault("full hooks go with a module that is made for a call", _held_weakly, hosts=("temporary",)),
)
