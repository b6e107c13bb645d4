# torch 2.15.0: hookcheck repro 554748f8ccbceff8 --clause GI-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Linear: grad_input[0] has another shape than it should."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run(register):
    calls = []
    net = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[-0.65625]]))
    x = torch.tensor([-1.40625], requires_grad=True)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(x).backward()
    return tuple(calls[0][0].shape)


expected = (1,)  # a gradient has the shape of its tensor
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
