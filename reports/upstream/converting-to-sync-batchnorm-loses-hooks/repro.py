# /// script
# dependencies = ["torch"]
# ///
"""convert_sync_batchnorm drops every hook of the layers that it replaces."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html

import torch
from torch import nn

calls = []
net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
for module in net:
    module.register_forward_hook(lambda module, args, output: calls.append(type(module).__name__))

net.eval()(torch.ones(2, 2))
control, calls[:] = list(calls), []

converted = nn.SyncBatchNorm.convert_sync_batchnorm(net).eval()  # evaluation needs no group
try:
    converted(torch.ones(2, 2))
except ValueError:  # up to 1.13 it wants CUDA in evaluation too
    raise SystemExit(3) from None
print("control:   ", control)
print("experiment:", calls)
# Both layers have one hook, before and after the conversion.
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["Linear", "BatchNorm1d"] else 0 if len(calls) == 2 else 1)
