"""Faults in what becomes of hooks in places that reports of users name."""

from __future__ import annotations

from torch.jit import RecursiveScriptModule

from ..engine import Fault, replaced
from ..registering import dropped, local

FAULTS = (
    Fault("reports: pre-hooks are not called", lambda: local("forward_pre_hook", dropped), ("RF-01",), kinds=()),
    Fault(
        "reports: scripts take forward hooks in silence",
        lambda: replaced(RecursiveScriptModule, "register_forward_hook", lambda original: lambda self, hook: None),
        ("RF-02",),
        kinds=(),
    ),
)
