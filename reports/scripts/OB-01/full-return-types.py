# torch 2.15.0: hookcheck repro 01fa9b8b9f48818a --clause OB-01 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of max: TypeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        return x.max(0, True)


def run(hooked):
    try:
        net = Net()
        x = torch.ones(1, requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
