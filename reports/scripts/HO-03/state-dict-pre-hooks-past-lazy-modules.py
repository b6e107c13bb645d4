# torch 2.0.1: hookcheck repro HO-03
# /// script
# dependencies = ["torch"]
# ///
"""still lazy: A state_dict pre-hook is called as ``(module, prefix, keep_vars)`` before …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1)


torch.manual_seed(0)


def _still_lazy(linear):
    lazy = nn.LazyLinear(linear.out_features, bias=linear.bias is not None)
    lazy.load_state_dict(linear.state_dict())
    return lazy


for experiment in (False, True):
    linear = _still_lazy(nn.Linear(1, 1, bias=False))
    nn.init.constant_(linear.weight, 3)
    net = nn.Sequential(linear)
    log = []

    def seen(module, prefix, keep_vars):
        log.append((type(module).__name__, prefix, keep_vars))

    handles = [module.register_state_dict_pre_hook(seen) for module in (net, net[0])]
    net.state_dict()
    log.clear()
    net.state_dict(prefix="net.", keep_vars=True)
    for handle in handles:
        if experiment:
            handle.remove()
    net.state_dict()
    check("calls once the handles are removed" if experiment else "without remove", len(log) - 2, 0)
