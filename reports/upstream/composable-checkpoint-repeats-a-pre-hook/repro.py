# /// script
# dependencies = ["torch"]
# ///
"""Composable checkpoint runs a forward pre-hook again on what the hook has returned."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint as functional

try:
    from torch.distributed._composable import checkpoint
except ImportError:
    raise SystemExit(3) from None


def gradient(composable):
    net = nn.Linear(1, 1, bias=False)
    net.register_forward_pre_hook(lambda module, args: (10 * args[0],))
    x = torch.tensor([[2.0]], requires_grad=True)
    if composable:
        checkpoint(net)
        net(x).backward()
    else:
        functional(net, x, use_reentrant=False).backward()
    return net.weight.grad.item()


control, experiment = gradient(composable=False), gradient(composable=True)
print("control:   ", control)
print("experiment:", experiment)
# y = w * 10 x, so that dy/dw = 10 x = 20.
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 20 else 0 if experiment == 20 else 1)
