# /// script
# dependencies = ["torch"]
# ///
"""copy.deepcopy of an optimizer loses its step hooks."""
# https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.register_step_post_hook.html

import copy

import torch
from torch import nn

if not hasattr(torch.optim.Optimizer, "register_step_post_hook"):
    raise SystemExit(3)

calls = []


def module():
    net = nn.Linear(1, 1)
    net.register_forward_hook(lambda *args: calls.append("hook"))
    copy.deepcopy(net)(torch.ones(1))


def optimizer():
    sgd = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    sgd.register_step_post_hook(lambda *args: calls.append("hook"))
    copy.deepcopy(sgd).step()


module()
control = len(calls)
optimizer()
experiment = len(calls) - control
print("calls of the copy's hook: control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 1 else 0 if experiment == 1 else 1)
