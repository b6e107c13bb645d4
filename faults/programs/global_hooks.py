"""Faults in how hooks are called that are put on all modules."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from ..engine import Fault, replaced
from ..registering import call, deaf, dropped, edited, every_second, everywhere, silenced


def _of_one_thread(hook: Any) -> Any:
    """The hook, called in the thread that registered it alone."""
    home = threading.get_ident()
    return lambda *arguments: hook(*arguments) if threading.get_ident() == home else None


def _swapped(one: str, other: str) -> tuple[tuple[str, str], ...]:
    """Changes that put two pieces of text into each other's place."""
    return (one, "<one>"), (other, one), ("<one>", other)


FAULTS = (
    Fault(
        "a global forward pre-hook is called every second time",
        lambda: everywhere("forward_pre_hook", every_second),
        ("GL-01", "GL-10"),
    ),
    Fault(
        "a global forward pre-hook is dropped",
        lambda: everywhere("forward_pre_hook", dropped),
        ("GL-01", "GL-04", "FW-16", "GL-13"),
    ),
    Fault(
        "a global forward pre-hook runs after the module's own",
        lambda: call(*_swapped("*_global_forward_pre_hooks.items()", "*self._forward_pre_hooks.items()")),
        ("GL-02", "FW-16"),
        since="2.1",
    ),
    Fault(
        "a global forward hook's result is ignored",
        lambda: everywhere("forward_hook", silenced),
        ("GL-03", "GL-06"),
    ),
    Fault(
        "a global forward hook gets keyword arguments unasked",
        lambda: call(("in _global_forward_hooks_with_kwargs", "in _global_forward_hooks")),
        ("GL-03", "GL-04", "FW-16"),
        since="2.6",
    ),
    Fault(
        "a global forward hook's always_call is ignored",
        lambda: deaf(torch_module, "register_module_forward_hook", always_call=False),
        ("GL-05",),
        since="2.1",
    ),
    Fault(
        "a global forward hook's with_kwargs is ignored",
        lambda: deaf(torch_module, "register_module_forward_hook", with_kwargs=False),
        ("GL-11",),
        since="2.6",
    ),
    Fault(
        "a global forward hook runs after the module's own",
        lambda: call(
            *_swapped("*_global_forward_hooks.items()", "*self._forward_hooks.items()"),
        ),
        ("GL-06", "GL-05", "FW-16"),
        since="2.1",
    ),
    Fault(
        "a global forward hook runs in the thread that registered it alone",
        lambda: everywhere("forward_hook", _of_one_thread),
        ("GL-09",),
    ),
    Fault(
        "a global forward hook's flags survive its handle",
        lambda: edited(
            torch_module,
            "register_module_forward_hook",
            ("extra_dict=_global_forward_hooks_always_called", "extra_dict=None"),
        ),
        ("GL-14",),
        since="2.1",
    ),
    Fault(
        "a handle of a global hook removes nothing",
        lambda: replaced(
            torch.utils.hooks.RemovableHandle, "remove", lambda remove: lambda self: _locally(self, remove)
        ),
        ("GL-10", "RG-04", "HD-01", "HD-03"),
    ),
    Fault(
        "a global hook with keyword arguments is not called after an error",
        lambda: edited(
            torch_module, "register_module_forward_hook", ("if always_call:", "if always_call and not with_kwargs:")
        ),
        ("GL-11",),
        since="2.6",
    ),
    Fault(
        "each global forward hook gets what forward gave",
        lambda: call(
            ("if _global_forward_hooks or self._forward_hooks:", "first = result\n        if True:"),
            (
                "hook_result = hook(self, args, result)\n\n",
                "hook_result = hook(self, args, first if hook_id in _global_forward_hooks else result)\n\n",
            ),
        ),
        ("GL-03",),
        since="2.6",
    ),
    Fault(
        "a decoder calls its layers past their hooks",
        lambda: edited(torch.nn.TransformerDecoder, "forward", ("output = mod(", "output = mod.forward(")),
        ("GL-03",),
    ),
    Fault(
        "an adaptive softmax calls its head past its hooks",
        lambda: edited(torch.nn.AdaptiveLogSoftmaxWithLoss, "forward", ("self.head(", "self.head.forward(")),
        ("GL-03",),
    ),
)


def _locally(handle: Any, remove: Any) -> None:
    tables = [table for name, table in vars(torch_module).items() if name.startswith("_global_")]
    if not any(handle.hooks_dict_ref() is table for table in tables):
        remove(handle)
