"""Tensors inside of tuples, lists, dicts and dataclasses: how others are put in their places."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import is_dataclass
from typing import Any

import torch

from hookcheck.probe.copying import fields_of, is_container


def keyed(container: Any) -> list[tuple[Any, Any]]:
    """What a container holds, each with the key by which `put` puts another thing there."""
    if isinstance(container, dict):
        return list(container.items())
    return fields_of(container) if is_dataclass(container) else list(enumerate(container))


def put(container: Any, key: Any, item: Any) -> None:
    """Puts ``item`` into a list, dict or dataclass."""
    if isinstance(container, (list, dict)):
        container[key] = item
    else:
        object.__setattr__(container, key, item)


def rebuilt(container: Any, items: list[Any]) -> Any:
    """A tuple of the same type with other items; the very same tuple where they are the same."""
    if all(item is other for item, other in zip(container, items)):
        return container
    make = getattr(type(container), "_make", type(container))
    return make(items)


def replaced(value: Any, old: Any, new: Any) -> Any:
    """``value``, a tensor or a tuple of such, with ``new`` for ``old``."""
    if value is old:
        return new
    if isinstance(value, tuple):
        return rebuilt(value, [replaced(item, old, new) for item in value])
    return value


def mapped(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """``value`` with what ``change`` makes of each tensor; containers are made anew, all else is the same object."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if not is_container(value) or isinstance(value, type):
        return value
    items = [(key, mapped(item, change)) for key, item in keyed(value)]
    if isinstance(value, tuple):
        return rebuilt(value, [item for _, item in items])
    new = copy(value)
    for key, item in items:
        put(new, key, item)
    return new
