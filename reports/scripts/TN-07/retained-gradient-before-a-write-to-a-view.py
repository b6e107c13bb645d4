# torch 2.1.2: hookcheck repro e50c55d4e01a3bbc --clause TN-07 --kind output_retain_grad
# /// script
# dependencies = ["torch"]
# ///
"""retain_grad on a module of select and scaleinplace: the gradient is a Tensor, not a tuple."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html

import torch
from torch import nn


class M0(nn.Module):
    def forward(self, x):
        return x * 2.0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = M0()

    def forward(self, x):
        h0 = self.m0(x)
        h0.select(-1, 0).mul_(2.0)
        return h0


def run():
    calls = []
    net = Net()
    x = torch.ones(1, requires_grad=True)

    def watch(module, args, output):
        output.retain_grad()
        calls.append(output)

    net.register_forward_hook(watch)
    net(x).backward()
    return type(calls[0].grad).__name__


expected = "tuple"  # hook()
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
