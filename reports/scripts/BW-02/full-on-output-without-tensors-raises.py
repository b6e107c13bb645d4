# torch 1.8.0: hookcheck repro 03032e1d5065218b --clause BW-02 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Flatten: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Flatten()

    def forward(self, x):
        return [[self.m0(x)]]


def run(hooked):
    net = Net()
    x = torch.ones(1, 1, requires_grad=True)
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    y = net(x)
    y[0][0].backward()
    y[0][0].backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
