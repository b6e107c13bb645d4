# torch 2.15.0: hookcheck repro HO-09
# /// script
# dependencies = ["torch"]
# ///
"""PostLocalSGDOptimizer: A step pre-hook is called as ``(optimizer, args, kwargs)`` before …"""

from importlib import import_module

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1)


def failure(act):
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


distributed = torch.distributed
if not distributed.is_available() or not getattr(distributed, "is_gloo_available", lambda: True)():
    raise SystemExit(3)
distributed.init_process_group("gloo", rank=0, world_size=1, store=distributed.HashStore())
parameter = nn.Parameter(torch.tensor([1.0]))
parameter.grad = torch.tensor([2.0])
averaging_optimizer = torch.optim.SGD([parameter], lr=0.25)
from torch.distributed.algorithms.model_averaging import averagers

averager = averagers.PeriodicModelAverager(period=4, warmup_steps=100)
optimizer = import_module("torch.distributed.optim").PostLocalSGDOptimizer(
    averaging_optimizer, averager
)
log = []


def seen(optimizer, args, kwargs):
    log.append(("first", parameter.item()))


check("register_step_pre_hook works", failure(lambda: optimizer.register_step_pre_hook(seen)), None)
