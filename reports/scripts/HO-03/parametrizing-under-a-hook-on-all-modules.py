# torch 1.9.1: hookcheck repro HO-03
# /// script
# dependencies = ["torch"]
# ///
"""parametrized, undone: A global full backward hook works as one on each module, and runs
before the module's own."""

from importlib import import_module

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 9):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "hosted works" else 2)


def failure(act):
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


def net(forward, **parts):
    module = type("Net", (nn.Module,), {"forward": forward})()
    for name, part in parts.items():
        setattr(module, name, nn.Parameter(torch.tensor(part)) if isinstance(part, float) else part)
    return module


def hosted(module):
    if experiment:
        if "weight" in module._parameters:
            weight = module.weight.detach().clone()
            for _ in range(1):
                import_module("torch.nn.utils.parametrize").register_parametrization(
                    module, "weight", nn.Identity()
                )
            import_module("torch.nn.utils.parametrize").remove_parametrizations(module, "weight")
            module.weight.data.copy_(weight)
    return module


for experiment in (False, True):
    with nn.modules.module.register_module_full_backward_hook(lambda *arguments: None):
        fact = "hosted works" if experiment else "without remove_parametrizations"
        check(
            fact,
            failure(lambda: hosted(net(lambda module, x: module.weight * x, weight=2.0))),
            None,
        )
