# torch 1.12.1: hookcheck repro 299862b972ee62cc --clause OB-08 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of Linear and RNN: after the run net.m0 is never freed."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import gc
import weakref

import torch
import torch.utils.checkpoint
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 11):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1)
        self.m1 = nn.RNN(1, 1)

    def forward(self, x):
        return self.m1(self.m0(x))[0]


def run(hooked):
    net = Net()
    x = torch.ones(1, 1, 1)
    if hooked:
        for module in net.modules():
            module.register_backward_hook(lambda *args: None)
    torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).backward()
    return weakref.ref(net.m0)


control, experiment = run(hooked=False), run(hooked=True)
gc.collect()
print("control:", control() is None, "experiment:", experiment() is None)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control() is not None else 0 if experiment() is None else 1)
