# torch 2.15.0: hookcheck repro 2905b59c7f2ba3b1 --clause OB-08 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Linear: after the run net is never freed."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import gc
import weakref

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def run(hooked):
    net = nn.Linear(1, 1, bias=False)
    x = torch.ones(1, requires_grad=True)
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    torch.autograd.grad(net(x) ** 2, net.weight, create_graph=True)
    return weakref.ref(net)


control, experiment = run(hooked=False), run(hooked=True)
gc.collect()
print("control:", control() is None, "experiment:", experiment() is None)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control() is not None else 0 if experiment() is None else 1)
