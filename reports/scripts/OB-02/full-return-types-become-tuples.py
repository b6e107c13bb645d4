# torch 1.8.0: hookcheck repro 85ff09d65b20711c --clause OB-02 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of max: a hook that returns None changes y."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        return x.max(0, False)


def run(hooked):
    net = Net()
    x = torch.ones((), requires_grad=True)
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    y = net(x)
    return type(y).__name__


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if experiment == control else 1)
