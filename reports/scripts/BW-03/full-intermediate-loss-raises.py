# torch 1.8.0: hookcheck repro 5f4eed2348faebf3 --clause BW-03 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear and LSTM: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(4, 1)
        self.m1 = nn.LSTM(1, 2, num_layers=2, batch_first=True, bidirectional=True, proj_size=1)
        self.m2 = nn.Linear(1, 4)

    def forward(self, x):
        return self.m2(self.m1(self.m0(x))[1][0])


def run(hooked):
    net = Net()
    if hooked:
        for module in net.modules():
            module.register_full_backward_hook(lambda *args: None)
    net(torch.ones(4, 1, 4)).backward(torch.ones(4, 4, 4))


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
