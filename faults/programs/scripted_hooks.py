"""Faults in what TorchScript makes of hooks: it forgets those of a part, or computes a tensor once and for all."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..engine import Fault, replaced


def _without_hooks(original: Any) -> Any:
    """Scripts a module whose parts have no hooks meanwhile."""

    def script(net: Any, *args: Any, **kwargs: Any) -> Any:
        before = [(part, dict(part._forward_hooks), dict(part._forward_pre_hooks)) for part in net.modules()]
        for part, *_ in before:
            part._forward_hooks.clear()
            part._forward_pre_hooks.clear()
        try:
            return original(net, *args, **kwargs)
        finally:
            for part, hooks, pre_hooks in before:
                part._forward_hooks.update(hooks)
                part._forward_pre_hooks.update(pre_hooks)

    return script


def _with_a_constant(original: Any) -> Any:
    """Traces a module whose weight is what it was computed to be."""

    def trace(net: Any, *args: Any, **kwargs: Any) -> Any:
        plain = nn.Linear(2, 1, bias=False)
        plain.weight.data.copy_(net.weight.detach())
        result = original(plain, *args, **kwargs)
        for name, parameter in net.named_parameters():
            setattr(result, name, parameter)
        return result

    return trace


FAULTS = (
    Fault("scripts have no hooks", lambda: replaced(torch.jit, "script", _without_hooks), ("TR-18",), kinds=()),
    Fault("traces keep a weight", lambda: replaced(torch.jit, "trace", _with_a_constant), ("TR-17",), kinds=()),
)
