# torch 1.9.1: hookcheck repro 509419b60616bceb --clause BW-03 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Embedding and LSTM: RuntimeError: Module …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Embedding(4, 1)
        self.m1 = nn.LSTM(1, 1, num_layers=2, bias=False, bidirectional=True)

    def forward(self, a0):
        return self.m1(self.m0(a0))[1][0]


def run(hooked):
    try:
        net = Net()
        a0 = torch.tensor([[2, 1, 0, 1]])
        v_y0 = torch.ones(4, 4, 1)
        if hooked:
            for module in net.modules():
                module.register_full_backward_hook(lambda *args: None)
        net(a0).backward(v_y0)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
assert control is None, "the control fails"
raise SystemExit(0 if experiment is None else 1)
