# torch 2.15.0: hookcheck repro 07a019ad5ab1283a --clause OB-07 --kind full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_pre_hook: a hook that returns None changes y.stride()."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_pre_hook"):
    raise SystemExit(3)


class M0(nn.Module):
    def forward(self, x):
        return x.permute(0, 3, 1, 2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = M0()
        self.m1 = nn.AdaptiveAvgPool2d(2)

    def forward(self, x):
        return self.m1(self.m0(x))


def run(hooked):
    torch.manual_seed(0)
    net = Net()
    x = torch.randn(1, 1, 2, 2, requires_grad=True)
    if hooked:
        net.register_full_backward_pre_hook(lambda *args: None)
    y = net(x)
    return y.stride()


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if experiment == control else 1)
