"""Faults in what is computed again in the backward of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial, wraps
from typing import Any

import torch
import torch.utils.checkpoint

from ..engine import Fault, added, replaced
from ..registering import edited
from .checkpointing import calling, plainly

Patch = AbstractContextManager[None]


def _without(name: str) -> Patch:
    """Has ``checkpoint`` not hear one of its options."""

    def call(original: Any, *args: Any, **options: Any) -> Any:
        return original(*args, **{key: options[key] for key in options if key != name})

    return calling(call)


def _nothing_is_compared() -> Patch:
    """Has each check of what was saved twice pass, whatever it finds."""
    frame = torch.utils.checkpoint._CheckpointFrame
    return replaced(frame, "check_recomputed_tensors_match", lambda original: lambda self, gid: None)


def _own_hook_is_elsewhere(name: str) -> Patch:
    """Has the hook by which a module is checkpointed be on the other side of those that there are."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, prepend: bool = False, **options: Any) -> Any:
            of_checkpoint = hook.__module__ == "torch.distributed._composable.checkpoint_activation"
            return original(self, hook, prepend=prepend is not of_checkpoint, **options)

        return register

    return replaced(torch.nn.Module, name, make)


def _stopped_whatever_is_asked(owner: Any, name: str) -> Patch:
    def make(original: Callable[..., Any]) -> Any:
        return wraps(original)(lambda *args, **options: original(*args, **{**options, "early_stop": True}))

    return replaced(owner, name, make)


def _selected(**changes: Any) -> Patch:
    """Has selective checkpointing be told something else."""
    return replaced(
        torch.utils.checkpoint,
        "create_selective_checkpoint_contexts",
        lambda original: lambda asked, **options: original(asked, **{**options, **changes}),
    )


def _nothing_is_selected() -> Patch:
    return replaced(
        torch.utils.checkpoint,
        "create_selective_checkpoint_contexts",
        lambda original: lambda asked, **options: original([], **options),
    )


FAULTS = (
    Fault("checkpoint: a region that asks for gradients runs once", lambda: calling(plainly), ("CK-38",), (), "2.1"),
    Fault(
        "checkpoint: what is saved twice is not compared",
        _nothing_is_compared,
        ("CK-23", "CK-27"),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "checkpoint: no second pass is ended early",
        lambda: replaced(torch.utils.checkpoint, "_enable_checkpoint_early_stop", lambda original: False),
        ("CK-27",),
        kinds=(),
        since="2.1",
    ),
    Fault("checkpoint: determinism_check is not heard", lambda: _without("determinism_check"), ("CK-23",), (), "2.1"),
    Fault(
        "composable checkpoint: its own forward hook is after all others",
        lambda: _own_hook_is_elsewhere("register_forward_hook"),
        ("CK-24",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "checkpoint: gradients inside of a region are taken for another pass",
        lambda: added(
            torch.utils.checkpoint._CheckpointFrame,
            "ignore_saved_mismatch",
            property(lambda self: False, lambda self, value: None),
        ),
        ("CK-38",),
        kinds=(),
        since="2.1",
    ),
    Fault("checkpoint: early_stop is not heard", lambda: _without("early_stop"), ("CK-26",), kinds=(), since="2.9"),
    Fault("selective checkpointing: nothing is saved", _nothing_is_selected, ("CK-25",), kinds=(), since="2.5"),
    Fault(
        "selective checkpointing: writing is not found out",
        partial(_selected, allow_cache_entry_mutation=True),
        ("CK-25",),
        kinds=(),
        since="2.5",
    ),
    Fault(
        "selective checkpointing: what was saved is used again",
        lambda: edited(
            torch.utils.checkpoint._CachedTorchDispatchMode,
            "__torch_dispatch__",
            ("func_storage[idx] = _CONSUMED", "pass"),
        ),
        ("CK-25",),
        kinds=(),
        since="2.13",
    ),
)
