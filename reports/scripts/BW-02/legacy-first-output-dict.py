# torch 2.15.0: hookcheck repro 1ebb94a7178d1661 --clause BW-02 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of LeakyReLU: StopIteration."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from collections import namedtuple

import torch
from torch import nn

LeftRightTuple = namedtuple("LeftRightTuple", ["left", "right"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m2 = nn.LeakyReLU()

    def forward(self, x):
        return {"left": LeftRightTuple(x, self.m2(x))}


def run(hooked):
    net = Net()
    x = torch.ones((), requires_grad=True)
    if hooked:
        net.register_backward_hook(lambda *args: None)
    net(x)["left"].right.backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
