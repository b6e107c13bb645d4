# torch 2.15.0: hookcheck repro ecd6036043cc5c93 --clause AG-01 --kind acting_forward
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


def run():
    try:
        net = Net()
        x = torch.ones(2, 2, 2, 3, requires_grad=True)
        a0 = torch.tensor([[[2, 1], [0, 1]], [[1, 2], [2, 1]]])
        net(x, a0).backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if experiment is None else 1)
