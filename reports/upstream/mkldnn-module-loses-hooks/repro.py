# /// script
# dependencies = ["torch"]
# ///
"""to_mkldnn drops every hook of the layers that it replaces."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn
from torch.utils.mkldnn import to_mkldnn

if not torch.backends.mkldnn.is_available():
    raise SystemExit(3)

calls = []
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval()
for module in net:
    module.register_forward_hook(lambda module, args, output: calls.append(type(module).__name__))

net(torch.ones(1, 2))
control, calls[:] = list(calls), []

to_mkldnn(net)(torch.ones(1, 2).to_mkldnn())
print("control:   ", control)
print("experiment:", calls)
# Both layers have one hook, before and after the conversion.
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["Linear", "ReLU"] else 0 if len(calls) == 2 else 1)
