"""Faults in how checkpointing treats the hooks of what it runs twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from importlib import import_module
from typing import Any

import torch
import torch.utils.checkpoint

from ..engine import Fault, replaced
from ..registering import edited

Change = Callable[[Any], Any]


def checkpoints(region: Change = lambda run: run, output: Change = lambda y: y) -> AbstractContextManager[None]:
    """Has ``checkpoint`` run ``region(run)`` in the place of a function, and give ``output(y)`` for its output."""
    return calling(lambda original, run, *args, **kwargs: output(original(region(run), *args, **kwargs)))


def calling(change: Callable[..., Any]) -> AbstractContextManager[None]:
    """Calls ``change(checkpoint, run, *args, **kwargs)`` where ``checkpoint`` is called."""
    return replaced(torch.utils.checkpoint, "checkpoint", lambda original: wraps(original)(partial(change, original)))


def plainly(original: Any, run: Any, *args: Any, **kwargs: Any) -> Any:
    """Runs the region as if it was none."""
    return run(*args)


@contextmanager
def hooks_off() -> Iterator[None]:
    """Modules are called without their hooks."""
    with replaced(torch.nn.Module, "__call__", lambda _: lambda self, *args, **kwargs: self.forward(*args, **kwargs)):
        yield


def hooks_off_in(turn: int) -> Change:
    """Runs a region without hooks in its first or second pass."""

    def change(run: Any) -> Any:
        passes: list[None] = []

        def region(*args: Any) -> Any:
            passes.append(None)
            if len(passes) != turn:
                return run(*args)
            with hooks_off():
                return run(*args)

        return region

    return change


def doubled(y: Any) -> Any:
    """Doubles the gradient of an output."""
    y.register_hook(lambda gradient: 2 * gradient)
    return y


def hoarding() -> AbstractContextManager[None]:
    """Keeps the outputs of regions."""
    alive: list[Any] = []
    return checkpoints(output=lambda y: (alive.append(y), y)[1])


def told_nothing(original: Any, *args: Any, respect_saved_tensors_hooks: Any = None, **kwargs: Any) -> Any:
    """Drops what is said about hooks for saved tensors."""
    return original(*args, **kwargs)


def composed_plainly() -> AbstractContextManager[None]:
    """Has the composable form leave a module as it is."""
    owner = import_module("torch.distributed._composable")
    return replaced(owner, "checkpoint", lambda original: wraps(original)(lambda module, **options: module))


def wrapped_plainly() -> AbstractContextManager[None]:
    """Has a wrapper run its module as if there was none."""
    owner = import_module("torch.distributed.algorithms._checkpoint.checkpoint_wrapper").CheckpointWrapper
    return replaced(owner, "forward", lambda original: lambda self, *args: self._checkpoint_wrapped_module(*args))


FAULTS = (
    Fault("checkpoint: regions are run plainly", lambda: calling(plainly), ("DS-13", "DS-14", "U-17")),
    Fault(
        "checkpoint: hooks do not run in the first pass",
        lambda: checkpoints(hooks_off_in(1)),
        (
            "DS-13",
            "CK-16",
            "CK-18",
            "CK-19",
        ),
    ),
    Fault(
        "checkpoint: hooks do not run in the second pass",
        lambda: checkpoints(hooks_off_in(2)),
        ("DS-13", "U-17", "CK-17"),
    ),
    Fault(
        "checkpoint: the gradient that enters a region is doubled",
        lambda: checkpoints(output=doubled),
        ("CK-14", "CK-20", "CK-15", "U-17"),
    ),
    Fault("checkpoint: its composable form does nothing", composed_plainly, ("DS-13", "U-17"), kinds=(), since="2.1"),
    Fault("checkpoint: its wrapper does nothing", wrapped_plainly, ("DS-13", "U-17"), kinds=(), since="2.1"),
    Fault("checkpoint: the outputs of regions are kept", hoarding, ("CK-21",)),
    Fault("checkpoint: respect_saved_tensors_hooks is not respected", lambda: calling(told_nothing), ("ST-24",)),
    Fault(
        "checkpoint: nothing is said where no input requires grad",
        lambda: replaced(torch.utils.checkpoint, "check_backward_validity", lambda original: lambda inputs: None),
        ("DS-14",),
    ),
    Fault(
        "checkpoint: what is looked at outside of backward is of one pass",
        lambda: replaced(torch.utils.checkpoint.uuid, "uuid4", lambda original: lambda: 7),
        ("CK-20",),
        since="2.1",
    ),
    Fault(
        "checkpoint: what a region is called with is not saved",
        lambda: edited(
            torch.utils.checkpoint._CheckpointFrame,
            "save_inputs",
            ("self.saved_args = [", "self.saved_args = list(args) if True else ["),
        ),
        ("CK-39",),
        kinds=(),
        since="2.13",
    ),
)

OUT_OF_REACH = {"CK-22": "since 2.1 every fact of it is refuted: what is saved has not been filled"}
