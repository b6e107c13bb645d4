# torch 2.13.0: hookcheck repro 697c0639daf8945b --clause BW-04 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of neg: the hook is called once, not never."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return {"left": (-x)}


def run(register):
    calls = []
    net = Net()
    x = torch.ones((), requires_grad=True)
    getattr(net, register)(lambda *args: calls.append(1))
    net(x)["left"].backward()
    return len(calls)


expected = 0  # no gradient that the hook waits for is computed
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
