# torch 2.15.0: hookcheck repro af1c0819512423c3 --clause BW-02 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x


def run(register):
    calls = []
    net = Net()
    x = torch.ones((), requires_grad=True)
    getattr(net, register)(lambda *args: calls.append(1))
    net(x).backward()
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
