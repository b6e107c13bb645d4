"""What is still there when nobody needs it any more? Weak references to things, after a collection of garbage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Note = Callable[[str, Any], None]
"""Takes the name of a thing and the thing, to which it keeps a weak reference."""


@contextmanager
def young() -> Iterator[None]:
    """Has collections inside concern only what is made inside: one that looks at all of torch's modules is slow."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def survivors(act: Callable[[Note], object]) -> list[str]:
    """The names of those things that ``act(note)`` notes and that are there when it is done and garbage collected."""
    things: list[tuple[str, weakref.ref[Any]]] = []
    with young():
        act(lambda name, thing: things.append((name, weakref.ref(thing))))
        gc.collect()
        return sorted({name for name, thing in things if thing() is not None})


def growth(act: Callable[[], object], times: int = 5) -> dict[str, int]:
    """By how many objects of which classes there are more when ``act`` has been called so many times than before.

    What leaks does so at every call: fewer are made once, on some use or by another thread. It is called twice first,
    since what is made on first use stays.
    """
    with young():
        before, after = _census(act, 2), _census(act, times)
    return {name: more for name, count in after.items() if (more := count - before.get(name, 0)) >= times}


def _census(act: Callable[[], object], times: int) -> dict[str, int]:
    """How many young objects there are of which classes when ``act`` has been called so many times."""
    for _ in range(times):
        act()
    gc.collect()
    names = [type(thing).__name__ for thing in gc.get_objects()]
    return {name: names.count(name) for name in set(names)}
