"""Faults in which pre-hooks pruning takes off, and puts on."""

from __future__ import annotations

from torch.nn.utils import prune
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from ..engine import Fault
from ..registering import edited

TAKES_OFF = "del module._forward_pre_hooks[k]"
"""How pruning takes the hook off whose key is ``k``."""


def _applying(what: str, old: str, new: str, id: str = "HT-10") -> Fault:
    """A fault in what prunes a tensor."""
    return Fault(f"pruning: {what}", lambda: edited(prune.BasePruningMethod, "apply", (old, new)), (id,), (), "1.13")


def _removing(what: str, new: str) -> Fault:
    """A fault in which hook is taken off where pruning is removed."""
    return Fault(f"pruning: {what}", lambda: edited(prune, "remove", (TAKES_OFF, new)), ("HT-10",), (), "1.13")


FAULTS = (
    _applying("the hook of a tensor stays where it is pruned again", TAKES_OFF, "pass"),
    _applying("pruning a tensor takes the hook of another one off", "and hook._tensor_name == name", ""),
    _applying("a container of one other method", "container.add_pruning_method(method)", "pass"),
    _removing("removing it takes the last hook off", "module._forward_pre_hooks.popitem()"),
    _removing(
        "removing it leaves the hook of a tensor that was pruned twice",
        "hook.__class__ is PruningContainer or module._forward_pre_hooks.pop(k)",
    ),
    _removing("removing it takes all hooks off", "module._forward_pre_hooks.clear()"),
    _applying(
        "one that fails leaves a hook",
        'del module._parameters[name + "_orig"]\n        raise e',
        "module.register_forward_pre_hook(method)\n        raise e",
        "HT-11",
    ),
    *(
        Fault(
            f"the hook of {kind.__name__} comes first",
            lambda kind=kind: edited(
                kind, "apply", ("register_forward_pre_hook(", "register_forward_pre_hook(prepend=True, hook=")
            ),
            ("HT-13",),
            (),
            "2.0",
        )
        for kind in (prune.BasePruningMethod, WeightNorm, SpectralNorm)
    ),
)
