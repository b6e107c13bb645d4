# torch 2.15.0: hookcheck repro 30791105c48c644f --clause GI-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of index: grad_input[0] has another shape than it should."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return (x[1, 0],)


def run(register):
    calls = []
    net = Net()
    x = torch.tensor([[1.0], [2.0]], requires_grad=True)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(x)[0].backward()
    return tuple(calls[0][0].shape)


expected = (2, 1)  # a gradient has the shape of its tensor
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
