# torch 2.15.0: hookcheck repro 4a1efa22056d8096 --clause BW-02 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of sum: TypeError: 'bool' object is not subscriptable."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return (True, x.sum(), x)


def run(hooked):
    try:
        net = Net()
        x = torch.ones((), requires_grad=True)
        if hooked:
            net.register_backward_hook(lambda *args: None)
        net(x)[2].backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
