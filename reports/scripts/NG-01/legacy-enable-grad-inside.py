# torch 2.13.0: hookcheck repro 68d3c73648440a17 --clause NG-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of Linear: the hook is called once, not never."""
# https://github.com/pytorch/pytorch/issues/65335

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m1 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        with torch.enable_grad():
            h1 = self.m1(x)
        return h1


def run(register):
    calls = []
    net = Net()
    x = torch.ones(1)
    getattr(net, register)(lambda *args: calls.append(1))
    with torch.no_grad():
        y = net(x)
    y.backward()
    return len(calls)


expected = 0  # no gradient that the hook waits for is computed
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
