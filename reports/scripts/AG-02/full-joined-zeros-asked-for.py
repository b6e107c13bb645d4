# torch 2.15.0: hookcheck repro 7affe5c30459a9d9 --clause AG-02 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear: a hook that returns None changes g[0]."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x0, x1):
        return self.m0(x0)


def run(hooked):
    net = Net()
    x = torch.ones(1, requires_grad=True)
    a = torch.ones((), requires_grad=True)
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    g = torch.autograd.grad(net(x, a), a, allow_unused=True)
    return type(g[0]).__name__


expected = "NoneType"  # no gradient is computed there
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
