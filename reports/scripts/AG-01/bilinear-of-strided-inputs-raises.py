# torch 1.9.1: hookcheck repro 40410266609ea1e2 --clause AG-01 --kind acting_forward_pre
# /// script
# dependencies = ["torch"]
# ///
"""a module of MultiheadAttention and Bilinear: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 9):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.MultiheadAttention(2, 2, bias=False, batch_first=True)
        self.m1 = nn.Bilinear(2, 2, 1, bias=False)

    def forward(self, c, a1):
        return self.m1(self.m0(c[0][0], c[0][0], c[0][0])[0], a1)


def run(experiment):
    net = Net()
    if not experiment:
        net.forward = lambda c, a1: net.m1(net.m0(c[0][0], c[0][0], c[0][0])[0].contiguous(), a1)
    net(([torch.ones(2, 2, 2)],), torch.ones(2, 2, 2))


run(experiment=False)  # the control raises nothing
try:
    run(experiment=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
