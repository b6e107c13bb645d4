# torch 2.15.0: hookcheck repro 774b099193998534 --clause AG-01 --kind acting_forward
# /// script
# dependencies = ["torch"]
# ///
"""a module of InstanceNorm2d and permute and transpose: x.grad is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.InstanceNorm2d(3)

    def forward(self, x):
        h2 = self.m0(x).permute(3, 2, 0, 1).transpose(-4, -3)
        return (h2, h2)


def run():
    net = Net()
    x = torch.arange(1.0, 13, dtype=torch.float64).reshape(2, 3, 1, 2).requires_grad_()
    v_y0 = torch.arange(1.0, 13, dtype=torch.float64).reshape(1, 2, 2, 3)
    net(x)[1].backward(v_y0)
    return x.grad[0, 1, 0, 1].item()


expected = 0.0002399856  # chain rule: Transpose, then Permute, then InstanceNorm2d
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if abs(experiment - expected) <= 1e-06 else 1)
