# torch 1.8.0: hookcheck repro e21fad9708dba2bf --clause BW-05 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook: the hook is called once, not never."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.SoftMarginLoss()
        self.m2 = nn.Linear(1, 1, bias=False)

    def forward(self, x, a0):
        return self.m0(x, a0)


def run(experiment):
    calls = []
    net = Net()
    x = torch.ones((), requires_grad=True)
    net.register_full_backward_hook(lambda *args: calls.append(1))
    if experiment:
        torch.autograd.grad(net(x, torch.ones(())), net.m2.weight, allow_unused=True)
    else:
        net(x, torch.ones(())).backward()
    return len(calls)


expected = 0  # no gradient that the hook waits for is computed
expected_of_control = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected_of_control else 0 if experiment == expected else 1)
