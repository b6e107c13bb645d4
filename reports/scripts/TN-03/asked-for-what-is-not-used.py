# torch 1.8.0: hookcheck repro e21fad9708dba2bf --clause TN-03 --kind output_tensor
# /// script
# dependencies = ["torch"]
# ///
"""register_hook on a module of Linear: the hook is called once, not never."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html
# no control: with one the script would pass 60 lines

import torch
from torch import nn


class M1(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.SoftMarginLoss()
        self.m2 = nn.Linear(1, 1, bias=False)

    def forward(self, x, a0, a1, a2):
        return self.m0(x, a0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)
        self.m1 = M1()

    def forward(self, x, a0, a1, a2):
        return self.m1(self.m0(x), a0, a1, a2)


calls = []
net = Net()
a0 = torch.ones(())
a1 = torch.ones(())
a2 = torch.ones(())


def watch(module, args, output):
    output.register_hook(calls.append)


net.m0.register_forward_hook(watch)
torch.autograd.grad(net(torch.ones(1), a0, a1, a2), net.m1.m2.weight, allow_unused=True)

expected = 0  # no gradient that the hook waits for is computed
experiment = len(calls)
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
