# torch 1.8.0: hookcheck repro a2834d983e3a8b2d --clause BW-05 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of ELU and sum: the hook is called once, not never."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.ELU(inplace=True)

    def forward(self, x):
        return self.m0(x.sum())


def run(experiment):
    calls = []
    net = Net()
    if not experiment:
        net.forward = lambda x: x.sum()
    x = torch.ones((), requires_grad=True)
    net.register_full_backward_hook(lambda *args: calls.append(1))
    net(x).backward()
    return len(calls)


expected = 0  # no gradient that the hook waits for is computed
expected_of_control = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected_of_control else 0 if experiment == expected else 1)
