# torch 2.15.0: hookcheck repro 75382b3fd3bd770e --clause GO-03 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on GroupNorm: grad_output has not 1 entry."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run(register):
    calls = []
    net = nn.GroupNorm(1, 2)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_output))
    net(torch.ones(1, 2)).backward(torch.ones(1, 2))
    return len(calls[0])


expected = 1  # one for each output
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
