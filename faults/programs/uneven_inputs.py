"""Faults in what hooks see where processes have different numbers of inputs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..engine import Fault
from ..registering import edited


def _hook(name: str, *changes: tuple[str, str]) -> Any:
    """Edits a method of what stands in for a process in DistributedDataParallel."""
    return lambda: edited(import_module("torch.nn.parallel.distributed")._DDPJoinHook, name, *changes)


FAULTS = tuple(
    Fault(f"a process that has joined {what}", patch, ("DD-18",), (), "2.13")
    for what, patch in (
        ("calls the module", _hook("main_hook", ("    # Buckets", "    ddp.module(torch.zeros(1))\n    # Buckets"))),
        (
            "always counts in the mean",
            _hook("__init__", ("_initial_world_size = divide_by_initial_world_size", "_initial_world_size = True")),
        ),
        (
            "does not hear of the model in the end",
            _hook("post_hook", ("self.ddp._sync_final_model(is_last_joiner)", "pass")),
        ),
    )
)
