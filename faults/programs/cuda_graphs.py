"""Faults in what CUDA graphs do with hooks."""

from __future__ import annotations

import torch

from ..engine import Fault, replaced
from .torch_func import past_hooks

FAULTS = (
    Fault(
        "CUDA graphs: make_graphed_callables takes modules that have hooks",
        lambda: past_hooks(torch.cuda, "make_graphed_callables"),
        ("DS-15",),
        kinds=(),
    ),
    Fault(
        "CUDA graphs: hooks on the end of a replay are dropped",
        lambda: replaced(torch.cuda.CUDAGraph, "register_replay_end_hook", lambda original: lambda self, hook: None),
        ("DS-16",),
        kinds=(),
    ),
)
