# torch 1.8.0: hookcheck repro e21fad9708dba2bf --clause BW-05 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of SoftMarginLoss and Linear: the hook is called …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
# no control: no run that is one step away passes

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


calls = []
net = Net()
x = torch.ones((), requires_grad=True)
net.register_full_backward_hook(lambda *args: calls.append(1))
torch.autograd.grad(net(x, torch.ones(())), net.m2.weight, allow_unused=True)

expected = 0  # no gradient that the hook waits for is computed
experiment = len(calls)
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
