"""Faults in which ways of using a module its hooks are passed over."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from torch.nn.modules import lazy

from ..engine import Fault, replaced
from ..registering import edited
from .interactions import _called_plainly


def _without(option: str) -> Callable[[Any], Any]:
    """Leaves out a hook, on a module or on all, that is registered with an option."""

    def make(original: Any) -> Any:
        def register(*module_and_hook: Any, **options: Any) -> Any:
            *module, hook = module_and_hook
            return original(*module, _nothing if options.get(option) else hook, **options)

        register.__signature__ = signature(original)  # type: ignore[attr-defined]
        return register

    return make


def _nothing(*_: Any) -> None:
    """A hook that does nothing."""


def _unregistered(option: str) -> Fault:
    return Fault(
        f"a hook on all modules with {option} is left out",
        lambda: replaced(torch.nn.modules.module, "register_module_forward_hook", _without(option)),
        ("CP-09",),
        since="2.1" if option == "always_call" else "2.6",
    )


FAULTS = (
    *(
        Fault(
            f"a {kind} with {option} is left out",
            lambda kind=kind, option=option: replaced(torch.nn.Module, f"register_{kind}", _without(option)),
            ("CP-03",),
            since="2.5",
        )
        for kind, option in (
            ("forward_pre_hook", "with_kwargs"),
            ("forward_hook", "with_kwargs"),
            ("forward_hook", "always_call"),
        )
    ),
    Fault(
        "log_prob of an adaptive softmax is computed past the hooks of its head",
        lambda: edited(
            torch.nn.AdaptiveLogSoftmaxWithLoss, "log_prob", ("self.head(input)", "self.head.forward(input)")
        ),
        ("CP-10",),
    ),
    Fault(
        "an encoder is called past its hooks where it has a padding mask",
        lambda: _called_plainly(lambda module: isinstance(module, torch.nn.TransformerEncoder)),
        ("CP-09",),
    ),
    _unregistered("always_call"),
    _unregistered("with_kwargs"),
    Fault(
        "attention is called past its hooks in inference",
        lambda: _called_plainly(
            lambda module: isinstance(module, torch.nn.MultiheadAttention) and not torch.is_grad_enabled()
        ),
        ("CP-09",),
    ),
    Fault(
        "a fast path of the encoder layer passes over the hooks inside",
        lambda: edited(
            torch.nn.TransformerEncoderLayer,
            "forward",
            ('getattr(m, "_forward_hooks", {})', "{}"),
            ('getattr(m, "_forward_pre_hooks", {})', "{}"),
        ),
        ("CP-02", "CP-03"),
        since="2.5",
    ),
    Fault(
        "a lazy module infers its parameters from positional arguments alone",
        lambda: edited(lazy.LazyModuleMixin, "_infer_parameters", ("(*args, **kwargs)", "(*args)")),
        ("CP-06",),
        since="2.2",
    ),
    Fault(
        "a lazy module loses the hooks of its user",
        lambda: edited(
            lazy.LazyModuleMixin,
            "_infer_parameters",
            ("module._load_hook.remove()", "module._load_hook.remove(); module._forward_pre_hooks.clear()"),
        ),
        ("CP-07",),
        since="2.2",
    ),
)
