# torch 2.15.0: hookcheck repro 8c10f912e35f6383 --clause BW-07 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Conv2d: grad_input has not 1 entry."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run(register):
    calls = []
    net = nn.Conv2d(1, 1, (1, 1), bias=False)
    x = torch.ones(1, 1, 1, 1)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(x).backward()
    return len(calls[0])


expected = 1  # one for each positional argument
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
