# torch 2.15.0: hookcheck repro ca3b5434c6a300a1 --clause GI-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Sequential: grad_input[0] has another shape than it should."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run(register):
    calls = []
    net = nn.Sequential(nn.Linear(1, 2), nn.Tanh())
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0], [2.0]]))
        net[0].bias.copy_(torch.tensor([1.0, 2.0]))
    x = torch.tensor([1.0], requires_grad=True)
    v_y = torch.tensor([1.0, 2.0])
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(x).backward(v_y)
    return tuple(calls[0][0].shape)


expected = (1,)  # a gradient has the shape of its tensor
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
