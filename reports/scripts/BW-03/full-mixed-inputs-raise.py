# torch 1.8.0: hookcheck repro 213c008a9c57a9d7 --clause BW-03 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear: AttributeError: 'NoneType' object has …"""
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
    try:
        net = Net()
        x0 = torch.ones(1)
        x1 = torch.ones((), requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(x0, x1).backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
assert control is None, "the control fails"
raise SystemExit(0 if experiment is None else 1)
