# /// script
# dependencies = ["torch"]
# ///
"""ModuleTracker does not name a module in backward if backward starts from the module's output."""
# https://docs.pytorch.org/docs/stable/module_tracker.html

import torch
from torch import nn

try:
    from torch.utils.module_tracker import ModuleTracker
except ImportError:
    raise SystemExit(3) from None


class Net(nn.Module):
    def forward(self, x):
        y = 2 * x
        y.register_hook(lambda grad: log.append(sorted(tracker.parents)))
        return 3 * y


log = []
with ModuleTracker() as tracker:
    net = Net()
    (1 * net(torch.ones(1, requires_grad=True))).backward()
    net(torch.ones(1, requires_grad=True)).backward()
control, experiment = log
print("backward from 1 * the output:", control)
print("backward from the output:    ", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["Global", "Net"] else 0 if experiment == control else 1)
