"""Faults in how torch.jit, torch.fx and torch.export treat hooks."""

from __future__ import annotations

from importlib import import_module

import torch

from ..engine import Fault, replaced
from .torch_func import never_removed, past_hooks

FAULTS = (
    Fault(
        "torch.jit.script: hooks are left out",
        lambda: past_hooks(torch.jit, "script"),
        ("TR-01",),
        kinds=(),
    ),
    Fault(
        "torch.jit: a removed hook is there still",
        never_removed,
        ("TR-02", "TR-03", "TR-04"),
        kinds=(),
    ),
    Fault("torch.jit.trace: hooks are left out", lambda: past_hooks(torch.jit, "trace"), ("TR-05",), kinds=()),
    Fault(
        "torch.fx: leaves are traced into, and with them their hooks",
        lambda: replaced(
            import_module("torch.fx").Tracer, "is_leaf_module", lambda original: lambda self, module, name: False
        ),
        ("TR-06",),
        kinds=(),
    ),
    Fault(
        "torch.export.export: hooks are left out",
        lambda: past_hooks(import_module("torch.export"), "export"),
        ("TR-07", "TR-08"),
        kinds=(),
    ),
)
