"""Which layers and operations are there? Every module of the two folders is imported, and every class found."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any

from hookcheck.topology import layers, ops
from hookcheck.topology.primitive import Drawn, Layer, Op


def _subclasses(base: Any, folder: str) -> Iterator[type[Drawn]]:
    children: list[type[Drawn]] = base.__subclasses__()
    for child in children:
        concrete: bool = is_dataclass(child)
        if concrete and child.__module__.startswith(f"{folder}."):
            yield child
        yield from _subclasses(child, folder)


def _all(base: Any, folder: str, paths: list[str]) -> dict[str, type[Drawn]]:
    for module in pkgutil.iter_modules(paths):
        importlib.import_module(f"{folder}.{module.name}")
    return {kind.__name__: kind for kind in sorted(set(_subclasses(base, folder)), key=lambda kind: kind.__name__)}


@lru_cache(maxsize=1)
def layer_classes() -> dict[str, type[Drawn]]:
    """The class of every layer, by its name in ``torch.nn``."""
    return _all(Layer, layers.__name__, list(layers.__path__))


@lru_cache(maxsize=1)
def op_classes() -> dict[str, type[Drawn]]:
    """The class of every operation between modules, by name."""
    return _all(Op, ops.__name__, list(ops.__path__))


def known(names: Iterable[str]) -> tuple[type[Drawn], ...]:
    """The classes of the layers and operations of these names, in this order."""
    every = {**layer_classes(), **op_classes()}
    return tuple(every[name] for name in names)
