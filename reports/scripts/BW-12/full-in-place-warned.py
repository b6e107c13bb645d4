# torch 1.8.0: hookcheck repro a2834d983e3a8b2d --clause BW-12 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of ELU and sum: writing in place raises no error."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.ELU(inplace=True)

    def forward(self, x):
        return self.m0(x.sum())


def run(hooked):
    try:
        net = Net()
        x = torch.ones((), requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if "modified inplace" in str(experiment) else 1)
