# torch 1.9.1: hookcheck repro 68d3c73648440a17 --clause BW-03 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook under no_grad under enable_grad: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m1 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        with torch.enable_grad():
            return self.m1(x)


def run(hooked):
    net = Net()
    x = torch.ones(1)
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    with torch.no_grad():
        y = net(x)
    y.backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
