# torch 2.15.0: hookcheck repro a37cbea7fe1ed65c --clause GO-02 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of sum: grad_output[0] is a Tensor, not None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        h0 = x.sum()
        return (h0, h0)


def run(register):
    calls = []
    net = Net()
    x = torch.ones((), requires_grad=True)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_output))
    net(x)[1].backward()
    return type(calls[0][0]).__name__


expected = "NoneType"  # no gradient is computed there
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
