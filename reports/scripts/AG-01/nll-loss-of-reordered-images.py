# torch 2.15.0: hookcheck repro ecd6036043cc5c93 --clause AG-01 --kind acting_forward_pre
# /// script
# dependencies = ["torch"]
# ///
"""a module of NLLLoss and permute: RuntimeError: grad_input must be contiguous."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.NLLLoss()

    def forward(self, x, a0):
        return self.m0(x.permute(0, 3, 1, 2), a0)


def run(experiment):
    net = Net()
    if not experiment:
        net.forward = lambda x, a0: net.m0(x.permute(0, 3, 1, 2).contiguous(), a0)
    x = torch.ones(2, 2, 2, 3, requires_grad=True)
    net(x, torch.tensor([[[2, 1], [0, 1]], [[1, 2], [2, 1]]])).backward()


run(experiment=False)  # the control raises nothing
try:
    run(experiment=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
