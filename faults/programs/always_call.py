"""Faults in what becomes of forward hooks where a call raises."""

from __future__ import annotations

import torch

from ..engine import Fault
from ..registering import call, deaf

AT_THE_END = "# raise exception raised in try block"

FAULTS = (
    Fault(
        "always_call runs global hooks from the last to the first",
        lambda: call(("in _global_forward_hooks.items():", "in reversed(_global_forward_hooks.items()):")),
        ("FW-23",),
        since="2.1",
    ),
    Fault(
        "always_call is ignored",
        lambda: deaf(torch.nn.Module, "register_forward_hook", always_call=False),
        ("FW-17", "FW-18", "FW-22", "FW-23", "HD-04"),
        since="2.1",
    ),
    Fault(
        "always_call holds for every forward hook",
        lambda: deaf(torch.nn.Module, "register_forward_hook", always_call=True),
        ("FW-18", "FW-22", "HD-04"),
        since="2.1",
    ),
    Fault(
        "always_call takes a hook that already ran for one that did not",
        lambda: call(("called_always_called_hooks.add(hook_id)", "pass")),
        ("FW-22", "GL-05"),
        since="2.1",
    ),
    Fault(
        "always_call hides the error",
        lambda: call((AT_THE_END, "return result")),
        ("FW-17", "FW-18", "FW-22", "FW-23", "GL-05"),
        since="2.1",
    ),
    Fault(
        "always_call hides the wish to end",
        lambda: call(("except Exception:", "except BaseException:"), (AT_THE_END, "return result")),
        ("FW-24",),
        since="2.1",
    ),
    Fault(
        "always_call stops at a hook that raises",
        lambda: call(("continue", "break")),
        ("FW-23",),
        since="2.1",
    ),
    Fault(
        "always_call forgets the error where a hook raises too",
        lambda: call(("continue", "raise e")),
        ("FW-23",),
        since="2.1",
    ),
    Fault(
        "always_call hands on the arguments of before the pre-hooks",
        lambda: call(
            ("def inner():", "given = args\n\n    def inner():"),
            ("hook(self, args, kwargs, result)  #", "hook(self, given, kwargs, result)  #"),
            ("hook(self, args, result)  #", "hook(self, given, result)  #"),
        ),
        ("FW-17",),
        since="2.13",
    ),
    Fault(
        "always_call drops what a hook with keyword arguments returns after an error",
        lambda: call(("hook_result = hook(self, args, kwargs, result)  #", "hook(self, args, kwargs, result)  #")),
        ("FW-23",),
        since="2.13",
    ),
    Fault(
        "always_call holds in training mode alone",
        lambda: call(
            (
                "for hook_id, hook in self._forward_hooks.items():",
                "for hook_id, hook in self._forward_hooks.items() if self.training else ():",
            )
        ),
        ("FW-17",),
        since="2.1",
    ),
)
