# /// script
# dependencies = ["torch"]
# ///
"""A full backward hook makes forward raise if the module returns what torch.max(x, 1) does."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        return torch.max(x, 1)


def outcome(hooked):
    net = Net()
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    try:
        net(torch.ones(1, 2, requires_grad=True)).values.sum().backward()
    except (TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return "works"


control, experiment = outcome(hooked=False), outcome(hooked=True)
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != "works" else 0 if experiment == control else 1)
