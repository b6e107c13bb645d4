# /// script
# dependencies = ["torch"]
# ///
"""fuse_modules leaves the forward pre-hook where it was and moves it too: it is called twice."""

import torch
from torch import nn

try:
    from torch.ao.quantization import fuse_modules
except ImportError:
    raise SystemExit(3) from None

calls = []
net = nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.ReLU()).eval()
x = torch.ones(1, 1, 2, 2)
net[0].register_forward_pre_hook(lambda module, args: calls.append(type(module).__name__))

net(x)
control, calls[:] = list(calls), []

fuse_modules(net, [["0", "1", "2"]])(x)
print("control:   ", control)
print("experiment:", calls)
# One hook, one call of the network: the fused module takes the place of the one that had it.
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["Conv2d"] else 0 if len(calls) == 1 else 1)
