"""What do hooks note in a situation on the torch at hand? The lines of its script are run, in a module of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import CodeType, ModuleType

from hookcheck.programs.logs import Entry
from hookcheck.programs.situations.acts import Act, Situation
from hookcheck.programs.situations.script import BENCH, lines

NAME = "hookcheck_situation"
"""What the module is called, in which pickle looks for the classes of a script."""


@lru_cache(maxsize=1)
def _bench() -> CodeType:
    return compile(BENCH.read_text(encoding="utf-8"), str(BENCH), "exec")


@lru_cache(maxsize=4096)
def _compiled(text: str) -> CodeType:
    return compile(text, "<situation>", "exec")


def play(situation: Situation, acts: Sequence[Act]) -> list[list[Entry]]:
    """What is noted during each act; no hook outlives them, and no garbage is left."""
    from hookcheck.probe.garbage import young
    from hookcheck.probe.state import preserved

    with preserved(), young(), _module() as module:
        setting, *each = lines(situation, acts)
        history = []
        exec(_compiled("\n".join(setting)), vars(module))
        for part in each:
            exec(_compiled("\n".join(part)), vars(module))
            history.append(module.noted())
        return history


@contextmanager
def _module() -> Iterator[ModuleType]:
    module = ModuleType(NAME)
    sys.modules[NAME] = module
    try:
        exec(_bench(), vars(module))
        yield module
    finally:
        for handle in vars(module).get("HANDLES", {}).values():
            with suppress(Exception):  # what is open must not outlive a situation that was cut off
                handle.remove()
        del sys.modules[NAME]
        vars(module).clear()
