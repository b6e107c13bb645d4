# torch 1.12.1: hookcheck repro 626c7c68854e655e --clause GO-02 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear: grad_output[0] is a Tensor, not None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)

leaked = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        h0 = self.m0(x)
        leaked["h0"] = h0
        return h0


def run():
    calls = []
    net = Net()
    x = torch.ones(1, requires_grad=True)
    net.register_full_backward_hook(
        lambda module, grad_input, grad_output: calls.append(grad_output)
    )
    net(x).backward(retain_graph=True)
    leaked["h0"].backward()
    return type(calls[1][0]).__name__


expected = "NoneType"  # no gradient is computed there
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
