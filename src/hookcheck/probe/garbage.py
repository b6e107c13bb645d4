"""What is still there when nobody needs it any more? Weak references to things, after a collection of garbage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def young() -> Iterator[None]:
    """Has collections inside concern only what is made inside: one that looks at all of torch's modules is slow."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def survivors(make: Callable[[], Mapping[str, Any]], collect: bool = True) -> list[str]:
    """The names of those things that ``make`` gives and that are there when nothing refers to what it gave.

    Without ``collect`` the garbage collector is kept from running, so that things in a reference cycle survive.
    """
    with young():
        enabled = gc.isenabled()
        gc.disable()
        try:
            things = {name: weakref.ref(thing) for name, thing in make().items()}
            if collect:
                gc.collect()
            return [name for name, thing in things.items() if thing() is not None]
        finally:
            if enabled:
                gc.enable()
