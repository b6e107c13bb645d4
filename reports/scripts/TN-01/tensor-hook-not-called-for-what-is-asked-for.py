# torch 1.12.1: hookcheck repro 2f6646aba1d2c3f0 --clause TN-01 --kind tensor
# /// script
# dependencies = ["torch"]
# ///
"""register_hook on Linear: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch import nn


def run():
    calls = []
    net = nn.Linear(1, 1)
    x = torch.ones(1, requires_grad=True)
    x.register_hook(calls.append)
    torch.autograd.grad(net(x), x)
    return len(calls)


expected = 1  # forward never, backward once
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
