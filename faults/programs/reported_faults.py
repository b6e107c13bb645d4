"""Faults in what becomes of hooks in places that reports of users name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch.jit import RecursiveScriptModule

from ..engine import Fault, replaced
from ..registering import dropped, local


def _leaving_fakes(original: Any) -> Any:
    """Exports a module, and leaves a tensor without numbers where a hook of a program writes."""

    def export(net: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(net, *args, **kwargs)
        mode = import_module("torch._subclasses.fake_tensor").FakeTensorMode()
        for part in net.modules():
            if hasattr(part, "stored"):
                part.stored = mode.from_tensor(torch.ones(1))
        return result

    return export


FAULTS = (
    Fault(
        "reports: an export leaves fakes in a module",
        lambda: replaced(import_module("torch.export"), "export", _leaving_fakes),
        ("RF-03",),
        kinds=(),
        since="2.6",
    ),
    Fault("reports: pre-hooks are not called", lambda: local("forward_pre_hook", dropped), ("RF-01",), kinds=()),
    Fault(
        "reports: scripts take forward hooks in silence",
        lambda: replaced(RecursiveScriptModule, "register_forward_hook", lambda original: lambda self, hook: None),
        ("RF-02",),
        kinds=(),
    ),
)
