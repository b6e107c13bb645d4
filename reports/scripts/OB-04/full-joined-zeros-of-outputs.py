# torch 1.12.1: hookcheck repro b60afb7330e0bb79 --clause OB-04 --kind global_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook: a hook that returns None changes x.grad."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m1 = nn.Linear(1, 1)

    def forward(self, x):
        return (self.m1(x.detach()), x)


def run(hooked):
    net = Net()
    x = torch.ones(1, requires_grad=True)
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    net(x)[0].backward()
    return type(x.grad).__name__


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if experiment == control else 1)
