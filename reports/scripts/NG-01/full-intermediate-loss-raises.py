# torch 1.12.1: hookcheck repro a9ff44ac7336305b --clause NG-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of LSTM: RuntimeError: Module backward hook for …"""
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
    try:
        net = Net()
        x = torch.ones(1, 1, 1)
        if hooked:
            for module in net.modules():
                module.register_full_backward_hook(lambda *args: None)
        net(x).backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
assert control is None, "the control fails"
raise SystemExit(0 if experiment is None else 1)
