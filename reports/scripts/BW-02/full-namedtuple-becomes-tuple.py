# torch 1.8.0: hookcheck repro 9d266b5aa38ff060 --clause BW-02 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear: AttributeError: 'tuple' object has no …"""
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
    try:
        net = Net()
        x = torch.ones(1, requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(x).left.backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
assert control is None, "the control fails"
raise SystemExit(0 if experiment is None else 1)
