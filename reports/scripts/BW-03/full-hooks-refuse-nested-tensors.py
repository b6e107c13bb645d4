# torch 2.15.0: hookcheck repro 4c00fd5807d89018 --clause BW-03 --kind global_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear and as_nested_tensor: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 2):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return torch.nested.as_nested_tensor([*self.m0(x)])


def run(hooked):
    net = Net()
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    net(torch.ones(1, 1)).backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
