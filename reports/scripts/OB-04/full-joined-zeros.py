# torch 2.15.0: hookcheck repro 5cdab0f560750903 --clause OB-04 --kind full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_pre_hook: a hook that returns None changes x1.grad."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_pre_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.MSELoss()

    def forward(self, x0, x1, a0):
        return (self.m0(x0, a0),)


def run(hooked):
    net = Net()
    x1 = torch.ones((), requires_grad=True)
    if hooked:
        net.register_full_backward_pre_hook(lambda *args: None)
    net(torch.ones((), requires_grad=True), x1, torch.ones(()))[0].backward()
    return type(x1.grad).__name__


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if experiment == control else 1)
