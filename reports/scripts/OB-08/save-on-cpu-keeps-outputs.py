# torch 2.15.0: hookcheck repro fdd0910545f5c6a5 --clause OB-08 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Sigmoid: after the run net is never freed."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import gc
import weakref

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 10):
    raise SystemExit(3)


def run(hooked):
    net = nn.Sigmoid()
    x = torch.ones((), requires_grad=True)
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    with torch.autograd.graph.save_on_cpu():
        net(x)
    return weakref.ref(net)


control, experiment = run(hooked=False), run(hooked=True)
gc.collect()
print("control:", control() is None, "experiment:", experiment() is None)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control() is not None else 0 if experiment() is None else 1)
