# torch 1.8.0: hookcheck repro e21fad9708dba2bf --clause TN-03 --kind output_tensor
# /// script
# dependencies = ["torch"]
# ///
"""register_hook on a module of Linear: the hook is called once, not never."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

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


def run(experiment):
    calls = []
    net = Net()
    x = torch.ones(1) if experiment else torch.ones(1, requires_grad=True)
    a1 = torch.ones(())
    a2 = torch.ones(())

    def watch(module, args, output):
        output.register_hook(calls.append)

    net.m0.register_forward_hook(watch)
    torch.autograd.grad(net(x, torch.ones(()), a1, a2), net.m1.m2.weight, allow_unused=True)
    return len(calls)


expected = 0  # no gradient that the hook waits for is computed
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
