# torch 1.8.0: hookcheck repro 9d266b5aa38ff060 --clause OB-01 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear: AttributeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from collections import namedtuple

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)

LeftTuple = namedtuple("LeftTuple", ["left"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return LeftTuple(self.m0(x))


def run(hooked):
    net = Net()
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    net(torch.ones(1)).left.backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
