"""Faults in how full backward hooks and pre-hooks are called that are put on all modules."""

from __future__ import annotations

import torch
from torch.nn.modules import module as torch_module

from ..engine import Fault, fetched
from ..registering import edited, everywhere, silenced

FAULTS = (
    Fault(
        "a global full backward hook is not called for modules without hooks of their own",
        lambda: fetched(lambda module, hooks: hooks if module._backward_hooks else []),
        ("GL-07",),
    ),
    Fault(
        "a global full backward hook's result is ignored",
        lambda: everywhere("full_backward_hook", silenced),
        ("GL-12",),
    ),
    Fault(
        "a global full backward hook runs after the module's own",
        lambda: fetched(lambda module, hooks: sorted(hooks, key=[*torch_module._global_backward_hooks.values()].count)),
        ("GL-12",),
    ),
    Fault(
        "a global full backward pre-hook is dropped",
        lambda: edited(
            torch.nn.Module,
            "_get_backward_pre_hooks",
            ("backward_pre_hooks += _global_backward_pre_hooks.values()", "pass"),
        ),
        ("GL-08", "GL-10"),
        since="2.0",
    ),
    Fault(
        "a global full backward pre-hook's result is ignored",
        lambda: everywhere("full_backward_pre_hook", silenced),
        ("GL-08",),
        since="2.0",
    ),
)
