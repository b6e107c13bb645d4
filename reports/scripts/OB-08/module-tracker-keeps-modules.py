# torch 2.4.1: hookcheck repro 0ceb31b85f101941 --clause OB-08 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear and sum: after the run net is never freed."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import gc
import weakref

import torch
import torch.utils.module_tracker
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 4):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1)

    def forward(self, x, a0, a1, a2):
        return self.m0(x).sum()


def run(hooked):
    net = Net()
    x = torch.ones(1, requires_grad=True)
    a0 = torch.ones(())
    a1 = torch.ones(())
    a2 = torch.ones(())
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    with torch.utils.module_tracker.ModuleTracker():
        net(x, a0, a1, a2)
    return weakref.ref(net)


control, experiment = run(hooked=False), run(hooked=True)
gc.collect()
print("control:", control() is None, "experiment:", experiment() is None)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control() is not None else 0 if experiment() is None else 1)
