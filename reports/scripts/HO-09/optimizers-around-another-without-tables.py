# torch 2.15.0: hookcheck repro HO-09
# /// script
# dependencies = ["torch"]
# ///
"""PostLocalSGDOptimizer: A step pre-hook is called as ``(optimizer, args, kwargs)`` before
every step: parameters are what they were."""

from importlib import import_module

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "register_step_pre_hook works" else 2)


def failure(act):
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


dist = torch.distributed
if not dist.is_available() or not getattr(dist, "is_gloo_available", lambda: True)():
    raise SystemExit(3)
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
for experiment in (False, True):
    parameter = nn.Parameter(torch.tensor([1.0]))
    parameter.grad = torch.tensor([2.0])
    averaging_optimizer = torch.optim.SGD([parameter], lr=0.25)
    from torch.distributed.algorithms.model_averaging import averagers

    averager = averagers.PeriodicModelAverager(period=4, warmup_steps=100)
    if experiment:
        optimizer = import_module("torch.distributed.optim").PostLocalSGDOptimizer(
            averaging_optimizer, averager
        )
    else:
        optimizer = averaging_optimizer

    def seen(optimizer, args, kwargs):
        parameter.item()
        torch.is_grad_enabled()

    name = "register_step_pre_hook works" if experiment else "without PostLocalSGDOptimizer"
    check(name, failure(lambda: optimizer.register_step_pre_hook(seen)), None)
