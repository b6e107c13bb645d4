# /// script
# dependencies = ["torch"]
# ///
"""A deep copy of what torch.compile makes of a module has none of the hooks on that."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import copy

import torch
from torch import nn

if not hasattr(torch, "compile") or not hasattr(torch, "compiler"):
    raise SystemExit(3)


def run(make):
    calls = []
    module = make(nn.Linear(2, 2))
    module.register_forward_hook(lambda *arguments: calls.append("forward"))
    copy.deepcopy(module)(torch.ones(1, 2))
    return len(calls)


control = run(lambda module: module)
experiment = run(lambda module: torch.compile(module, backend="eager"))
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 1 else 0 if experiment == 1 else 1)
