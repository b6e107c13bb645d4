# /// script
# dependencies = ["torch"]
# ///
"""ModuleTracker does not name a module any more after it has called itself."""
# https://docs.pytorch.org/docs/stable/module_tracker.html

import torch
from torch import nn

try:
    from torch.utils.module_tracker import ModuleTracker
except ImportError:
    raise SystemExit(3) from None


class Net(nn.Module):
    def forward(self, x, depth):
        if depth:
            self(x, depth - 1)
        log.append(sorted(tracker.parents))
        return x


with ModuleTracker() as tracker:
    log = []
    Net()(torch.ones(1), 0)
    control = log
    log = []
    Net()(torch.ones(1), 1)
    experiment = log
print("control, one call:                          ", control)
print("experiment, an inner call and the outer one:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [["Global", "Net"]] else 0 if experiment == control * 2 else 1)
