# torch 2.15.0: hookcheck repro 5c3418733d55246b --clause OB-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of sum: StopIteration."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from collections import namedtuple

import torch
from torch import nn

LeftRightTuple = namedtuple("LeftRightTuple", ["left", "right"])


class Net(nn.Module):
    def forward(self, x):
        h0 = x.sum()
        return {"left": LeftRightTuple(h0, h0)}


def run(hooked):
    net = Net()
    x = torch.ones((), requires_grad=True)
    if hooked:
        net.register_backward_hook(lambda *args: None)
    net(x)["left"].left.backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
