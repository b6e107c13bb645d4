# torch 2.13.0: hookcheck repro SI-01
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_pre_hook in detect_anomaly after set_: a hook is never freed."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import gc
import weakref
from contextlib import nullcontext, suppress

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def run(experiment):
    net = nn.Linear(1, 1)
    x = torch.ones(1, 1, requires_grad=True)

    def a(*_):
        pass

    handle = net.register_full_backward_pre_hook(a)
    with torch.autograd.detect_anomaly() if experiment else nullcontext():
        y = net(x)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.set_(parameter.clone())
    with suppress(RuntimeError):
        with torch.autograd.detect_anomaly() if experiment else nullcontext():
            y.backward()
    handle.remove()
    return weakref.ref(a)


control, experiment = run(experiment=False), run(experiment=True)
gc.collect()
print("control:", control() is None, "experiment:", experiment() is None)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control() is not None else 0 if experiment() is None else 1)
