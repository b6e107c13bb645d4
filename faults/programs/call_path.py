"""Faults in which ways of using a module its hooks are passed over."""

from __future__ import annotations

import torch
from torch.nn.modules import lazy

from ..engine import Fault
from ..registering import edited
from .interactions import _called_plainly

FAULTS = (
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
