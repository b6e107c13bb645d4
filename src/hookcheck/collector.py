"""What is Python's garbage collector spared? Hundreds of thousands of small objects that stay until the end.

It would go through them again and again, for a quarter of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No automatic collection inside; afterwards as before."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@contextmanager
def paused_until_exit() -> Iterator[None]:
    """No automatic collection inside, and none ever of what is there at the end: for a command whose process ends soon.

    Whatever is part of a cycle then stays, as templates keep all that they were drawn from.
    """
    with paused():
        yield
        gc.freeze()


@contextmanager
def eased() -> Iterator[None]:
    """Collections inside are rarer: what one topology takes is mostly freed before the first one looks at it."""
    before = gc.get_threshold()
    gc.set_threshold(10_000, 10, 10)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def settle() -> None:
    """Collects, and has later collections leave alone all that is there now."""
    gc.collect()
    gc.freeze()
