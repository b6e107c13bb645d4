"""Faults in how FSDP and fully_shard work by hooks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, replaced


def _fsdp() -> Any:
    return import_module("torch.distributed.fsdp").FullyShardedDataParallel


FAULTS = (
    Fault(
        "FullyShardedDataParallel: comm hooks are dropped",
        lambda: replaced(_fsdp(), "register_comm_hook", lambda original: lambda self, state, hook: None),
        ("DS-09",),
        kinds=(),
    ),
    Fault(
        "FullyShardedDataParallel: what it gives is detached",
        lambda: replaced(
            _fsdp(), "forward", lambda original: lambda self, *args, **kwargs: original(self, *args, **kwargs).detach()
        ),
        ("DS-10",),
        kinds=(),
    ),
    Fault(
        "fully_shard: parameters are not freed after forward",
        lambda: replaced(
            import_module("torch.distributed.fsdp._fully_shard._fsdp_state").FSDPState,
            "_post_forward",
            lambda original: lambda self, module, args, output: output,
        ),
        ("DS-11", "DS-12"),
        kinds=(),
        since="2.7",
    ),
    Fault(
        "fully_shard: full backward hooks are dropped",
        lambda: replaced(
            torch.nn.Module, "register_full_backward_hook", lambda original: lambda self, hook, prepend=False: None
        ),
        ("DS-11", "DS-20"),
        kinds=(),
        since="2.7",
    ),
)
