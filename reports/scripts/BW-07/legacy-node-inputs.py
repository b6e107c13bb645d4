# torch 2.15.0: hookcheck repro 3e891f9fb7d71195 --clause BW-07 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Tanhshrink: grad_input has not 1 entry."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run(register):
    calls = []
    net = nn.Tanhshrink()
    x0 = torch.ones((), requires_grad=True)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(x0).backward()
    return len(calls[0])


expected = 1  # one for each positional argument
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
