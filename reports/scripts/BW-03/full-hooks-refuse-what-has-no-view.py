# torch 2.15.0: hookcheck repro 0749a1471bb1c9df --clause BW-03 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear and astensor: NotImplementedError: Could …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return self.m0(x).to_sparse_csr()


def run(hooked):
    try:
        net = Net()
        x = torch.ones(1, 1)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(x).sum().backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
assert control is None, "the control fails"
raise SystemExit(0 if experiment is None else 1)
