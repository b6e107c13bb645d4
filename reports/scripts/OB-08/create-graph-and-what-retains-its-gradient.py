# torch 2.15.0: hookcheck repro 477bc60ecee2fe01 --clause OB-08 --kind output_retain_grad
# /// script
# dependencies = ["torch"]
# ///
"""retain_grad on SiLU: after the run x is never freed."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import gc
import weakref

import torch
from torch import nn


def run(hooked):
    net = nn.SiLU()
    x = torch.ones((), requires_grad=True)
    if hooked:

        def watch(module, args, output):
            if output.requires_grad:
                output.retain_grad()

        net.register_forward_hook(watch)
    torch.autograd.grad(net(x) ** 2, x, create_graph=True)
    return weakref.ref(x)


control, experiment = run(hooked=False), run(hooked=True)
gc.collect()
print("control:", control() is None, "experiment:", experiment() is None)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control() is not None else 0 if experiment() is None else 1)
