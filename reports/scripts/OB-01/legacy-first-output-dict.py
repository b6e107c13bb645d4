# torch 2.15.0: hookcheck repro 5c3418733d55246b --clause OB-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of sum: StopIteration:."""
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
    try:
        net = Net()
        x = torch.ones((), requires_grad=True)
        if hooked:
            net.register_backward_hook(lambda *args: None)
        net(x)["left"].left.backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
assert control is None, "the control fails"
raise SystemExit(0 if experiment is None else 1)
