# torch 1.9.1: hookcheck repro dc25e1af6addd97e --clause GI-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Conv2d: grad_input[0] has another shape than it should."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run(register):
    calls = []
    net = nn.Conv2d(2, 2, (1, 1), groups=2, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[[[1.0]]], [[[2.0]]]]))
    x = torch.tensor([[[[1.0]], [[2.0]]]], requires_grad=True)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(x).sum().backward()
    return tuple(calls[0][0].shape)


expected = (1, 2, 1, 1)  # a gradient has the shape of its tensor
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
