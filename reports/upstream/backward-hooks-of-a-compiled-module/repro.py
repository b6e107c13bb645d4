# /// script
# dependencies = ["torch"]
# ///
"""A full backward hook on what torch.compile makes of a module is never called."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(torch, "compile") or not hasattr(torch, "compiler"):
    raise SystemExit(3)


def run(name):
    torch._dynamo.reset()
    calls = []
    compiled = torch.compile(nn.Linear(2, 2), backend="eager")
    getattr(compiled, name)(lambda *arguments: calls.append(name))
    compiled(torch.ones(1, 2, requires_grad=True)).sum().backward()
    return len(calls)


control = run("register_full_backward_pre_hook")
experiment = run("register_full_backward_hook")
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 1 else 0 if experiment == 1 else 1)
