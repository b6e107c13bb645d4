"""Faults in legacy backward hooks, and in the removal of hooks of any kind."""

from __future__ import annotations

import torch

from ..engine import Fault, calling, fetched, replaced
from ..registering import call

UNHEARD = "lambda *args, hook=hook: hook(*args) and None"
"""A hook whose result counts for nothing."""

FAULTS = (
    Fault(
        "legacy hooks: what a partial binds is lost",
        lambda: call(("_WrappedHook(hook, self)", "_WrappedHook(getattr(hook, 'func', hook), self)")),
        ("LB-03",),
        since="2.1",
    ),
    Fault(
        "legacy hooks: what a bound method returns is ignored",
        lambda: call(
            ("_WrappedHook(hook, self)", f"_WrappedHook({UNHEARD} if hasattr(hook, '__self__') else hook, self)")
        ),
        ("LB-03",),
        since="2.1",
    ),
    Fault(
        "legacy hooks: no warning says that gradients are missing",
        lambda: replaced(
            torch.nn.Module, "_maybe_warn_non_full_backward_hook", lambda original: lambda self, *args: None
        ),
        ("LB-01", "LB-02"),
    ),
    Fault(
        "legacy hooks: the first gradient alone is handed over",
        lambda: calling(lambda hook, module, grad_input, grad_output: hook(module, grad_input[:1], grad_output)),
        ("LB-03",),
    ),
    Fault(
        "backward hooks of modules: none is called",
        lambda: fetched(lambda module, hooks: []),
        ("LB-03", "LB-04", "BL-01", "BS-07"),
    ),
    Fault(
        "removal of hooks: it has no effect",
        lambda: replaced(torch.utils.hooks.RemovableHandle, "remove", lambda original: lambda self: None),
        (
            "LB-06",
            "LB-07",
            "AC-11",
            "BL-02",
            "BL-03",
            "BL-04",
            "BL-10",
        ),
    ),
)

OUT_OF_REACH = {
    "LB-05": "its one fact deviates on every release, so no fault can add to that",
}
