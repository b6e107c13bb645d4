"""Faults in what runs a network on behalf of a program: its hooks are lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .engine import ALL, Fault, replaced
from .programs.checkpointing import checkpoints, doubled, hooks_off


@contextmanager
def functional_calls_without_hooks() -> Iterator[None]:
    def make(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            with hooks_off():
                return original(*args, **kwargs)

        return call

    with replaced(torch.func, "functional_call", make):
        yield


def unhooked(run: Any) -> Any:
    """Runs a region without its hooks."""

    def region(*args: Any) -> Any:
        with hooks_off():
            return run(*args)

    return region


FORWARDS = ("forward_pre", "forward", "global_forward_pre", "global_forward")

CONTEXTS = (
    Fault(
        "a functional call leaves hooks out",
        functional_calls_without_hooks,
        ("FN-01", "BW-02"),
        (*FORWARDS, *ALL),
        "2.0",
    ),
    Fault("a checkpoint leaves hooks out", lambda: checkpoints(unhooked), ("FN-01",), (*FORWARDS, *ALL), "1.11"),
    Fault(
        "a checkpoint doubles the gradient that enters it",
        lambda: checkpoints(output=doubled),
        ("GO-01", "AG-01"),
        ALL,
        "1.11",
    ),
)
