# torch 1.12.1: hookcheck repro a9ff44ac7336305b --clause NG-01 --kind global_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of LSTM under no_grad: RuntimeError."""
# https://github.com/pytorch/pytorch/issues/65335

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class M0(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)
        self.m1 = nn.Tanh()

    def forward(self, x):
        h0 = self.m0(x)
        with torch.no_grad():
            self.m1(h0)
        return h0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = M0()
        self.m1 = nn.LSTM(1, 1)

    def forward(self, x):
        return self.m1(self.m0(x))[1][1]


def run(hooked):
    net = Net()
    if hooked:
        for module in net.modules():
            module.register_full_backward_hook(lambda *args: None)
    net(torch.ones(1, 1, 1)).backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
