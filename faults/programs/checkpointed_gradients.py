"""Faults in the gradients that hooks in and around checkpointed regions see."""

from __future__ import annotations

from typing import Any

import torch

from ..engine import Fault, replaced
from .checkpointing import checkpoints, doubled, hooks_off_in


def hooked_twice() -> Any:
    """Registers tensor hooks twice."""
    return replaced(
        torch.Tensor,
        "register_hook",
        lambda original: lambda self, hook: (original(self, hook), original(self, hook))[1],
    )


def in_halves(run: Any) -> Any:
    """Runs a region twice, and takes the mean."""
    return lambda *args: (run(*args) + run(*args)) / 2


FAULTS = (
    Fault(
        "checkpoint: hooks inside do not run in the second pass",
        lambda: checkpoints(hooks_off_in(2)),
        ("CK-01", "CK-02", "CK-03", "CK-11", "CK-13"),
    ),
    Fault(
        "checkpoint: hooks inside do not run in the first pass",
        lambda: checkpoints(hooks_off_in(1)),
        ("CK-07", "CK-12"),
    ),
    Fault(
        "checkpoint: gradients that enter a region are doubled",
        lambda: checkpoints(output=doubled),
        ("CK-01", "CK-03", "CK-04", "CK-05", "CK-08", "CK-09", "CK-10", "CK-12"),
    ),
    Fault(
        "checkpoint: a region is run in two halves",
        lambda: checkpoints(in_halves),
        ("CK-01", "CK-03", "CK-06", "CK-11", "CK-12", "CK-13"),
    ),
    Fault("checkpoint: tensor hooks are called twice", hooked_twice, ("CK-05", "CK-06")),
)
