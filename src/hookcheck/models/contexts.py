"""What do hooks see of a step that runs in a context, compared with the same step in eager mode?"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS
from hookcheck.models.cuts import Cuts
from hookcheck.models.judging import hooked
from hookcheck.models.reach import reachable
from hookcheck.models.reference import agree
from hookcheck.models.result import Remark, times
from hookcheck.models.same_under import CONTEXTS, around, offered
from hookcheck.models.step import ModelStep, ModelUse
from hookcheck.oracle.tolerance import coarsest
from hookcheck.probe.observation import Copy, Event, dtype_of, numbers

EAGER = "eager"
OTHER_NUMBERS = ("eval", "autocast", "bfloat16")
"""The contexts in which a model is to compute something else: only calls, their order and None are compared."""


def usable_contexts(contexts: Iterable[str]) -> list[str]:
    """The contexts beside eager mode.

    Raises:
        HookcheckError: one is unknown, or this torch lacks it.
    """
    names = [contexts] if isinstance(contexts, str) else list(dict.fromkeys(contexts))
    for name in names:
        if name not in CONTEXTS:
            raise HookcheckError(f"unknown context {name!r}; choose from {', '.join(CONTEXTS)}")
        if not offered(name):
            raise HookcheckError(f"torch {torch.__version__} has no context {name!r}: leave it out")
    return [name for name in names if name != EAGER]


def compared(use: ModelUse, kind: str, contexts: Sequence[str], cuts: Cuts) -> Iterator[Remark]:
    """How hooks of ``kind`` are called otherwise in each context than in eager mode, of which ``cuts`` say where they
    can be."""
    paths = reachable(use, KINDS[kind], cuts)
    eager = hooked(use, KINDS[kind], paths)
    if eager.raised:
        yield Remark(
            "other contexts", f"not compared, since the step raises {eager.seen.raised} in eager mode", (), (kind,)
        )
        return
    for context in contexts:
        _forget_compiled()
        with _quiet(), around(context):
            other = hooked(use, KINDS[kind], paths, CONTEXTS[context], compiled=context.startswith("compile"))
        _forget_compiled()
        for text, modules in _differences(eager, other, values=context not in OTHER_NUMBERS):
            yield Remark(f"in the context {context}", text, modules, (kind,))


@contextmanager
def _quiet() -> Iterator[None]:
    """torch.compile logs that it compiles our recorders again and again, which is no matter of the model's."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _forget_compiled() -> None:
    dynamo = getattr(torch, "_dynamo", None)
    if dynamo is not None:
        dynamo.reset()


def _differences(eager: ModelStep, other: ModelStep, values: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    if other.raised:
        yield f"the step raises {other.seen.raised}", ()
        return
    before, after = _by_path(eager.seen.events), _by_path(other.seen.events)
    counts: dict[str, list[str]] = {}
    for path in {**before, **after}:
        due, seen = len(before.get(path, ())), len(after.get(path, ()))
        if due != seen:
            counts.setdefault(f"called {times(seen)} and not {times(due)}", []).append(path)
    for text, paths in counts.items():
        yield text, tuple(paths)
    if not counts and [e.path for e in eager.seen.events] != [e.path for e in other.seen.events]:
        yield "called in another order", ()
    apart: dict[str, list[str]] = {}
    for path in before.keys() & after.keys():
        if len(before[path]) == len(after[path]):
            words = (_apart(a.arguments, b.arguments, values) for a, b in zip(before[path], after[path]))
            word = next((word for word in words if word), "")
            if word:
                apart.setdefault(word, []).append(path)
    for text, paths in apart.items():
        yield text, tuple(path for path in before if path in paths)


def _by_path(events: Iterable[Event]) -> dict[str, list[Event]]:
    by_path: dict[str, list[Event]] = {}
    for event in events:
        by_path.setdefault(event.path, []).append(event)
    return by_path


def _apart(eager: Copy, other: Copy, values: bool) -> str:
    """How what a hook was given differs, in words; empty where it does not."""
    if (eager is None) != (other is None):
        return "given None for a tensor" if other is None else "given a tensor for None"
    if isinstance(eager, (tuple, list)) and isinstance(other, (tuple, list)):
        if len(eager) != len(other):
            return f"given {len(other)} values, not {len(eager)}"
        return next(filter(None, (_apart(a, b, values) for a, b in zip(eager, other))), "")
    if isinstance(eager, np.ndarray) and isinstance(other, np.ndarray):
        return _arrays_apart(eager, other, values)
    return ""


def _arrays_apart(eager: Any, other: Any, values: bool) -> str:
    if eager.shape != other.shape:
        return f"given the shape {other.shape}, not {eager.shape}"
    dtype = coarsest([dtype_of(eager), dtype_of(other)])
    same = not values or agree(numbers(other), numbers(eager), dtype)
    return "" if same else "given other numbers"
