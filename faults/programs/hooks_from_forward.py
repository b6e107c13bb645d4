"""Faults in what becomes of hooks that a module's forward registers or removes."""

from __future__ import annotations

from ..engine import Fault
from ..registering import call

FAULTS = (
    Fault(
        "a call gathers its forward hooks before forward",
        lambda: call(
            ("result = None", "result, kept = None, [*self._forward_hooks.items()]"),
            ("*self._forward_hooks.items()", "*kept"),
        ),
        ("HF-01", "HF-02"),
        since="2.1",
    ),
)
