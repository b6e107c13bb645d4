# /// script
# dependencies = ["torch"]
# ///
"""ModuleTracker names a module as running after an exception has ended it."""
# https://docs.pytorch.org/docs/stable/module_tracker.html

import torch
from torch import nn

try:
    from torch.utils.module_tracker import ModuleTracker
except ImportError:
    raise SystemExit(3) from None


class Net(nn.Module):
    def forward(self, x, fails):
        if fails:
            raise KeyError("in forward")
        return x


def running(fails):
    with ModuleTracker() as tracker:
        try:
            Net()(torch.ones(1), fails)
        except KeyError:
            pass
        return sorted(tracker.parents)


control, experiment = running(fails=False), running(fails=True)
print("control, after a forward:         ", control)
print("experiment, after one that raised:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["Global"] else 0 if experiment == control else 1)
