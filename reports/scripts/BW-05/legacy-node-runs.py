# torch 2.13.0: hookcheck repro 8634ea6b1877e81d --clause BW-05 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of NLLLoss: the hook is called once, not never."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.NLLLoss()

    def forward(self, x1, a0, x0):
        return self.m0(x0, a0)


def run(register):
    calls = []
    net = Net()
    x0 = torch.ones(1, requires_grad=True)
    x1 = torch.ones((), requires_grad=True)
    getattr(net, register)(lambda *args: calls.append(1))
    net(x1, torch.tensor(0), x0=x0).backward()
    return len(calls)


expected = 0  # no gradient that the hook waits for is computed
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
