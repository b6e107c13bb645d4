# torch 2.15.0: hookcheck repro c88faf2a23623499 --clause BW-08 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of HuberLoss: grad_input[0] is a Tensor, not None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 9):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.HuberLoss()

    def forward(self, c, x, a0):
        return self.m0(x, a0)


def run(register):
    calls = []
    net = Net()
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net([], torch.ones((), requires_grad=True), torch.ones(())).backward()
    return type(calls[0][0]).__name__


expected = "NoneType"  # no gradient is computed there
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
