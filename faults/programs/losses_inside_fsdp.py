"""Faults in where a backward may start under FullyShardedDataParallel: its hook on an output is not registered."""

from __future__ import annotations

from ..engine import Fault
from .sharded_steps import _of_fsdp

FAULTS = (
    Fault(
        "FSDP: an output that is a tensor starts no backward",
        lambda: _of_fsdp(
            "_register_pre_backward_hooks", ("return _apply_to_tensors(_register_hook, outputs)", "return outputs")
        ),
        ("FS-01",),
        kinds=(),
        since="2.2",
    ),
)
