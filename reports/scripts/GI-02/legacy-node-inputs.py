# torch 1.8.0: hookcheck repro db434e9bc949b9dc --clause GI-02 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on L1Loss: grad_input[1] is None, not a Tensor."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run(register):
    calls = []
    net = nn.L1Loss()
    x0 = torch.ones((), requires_grad=True)
    x1 = torch.ones(())
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(x0, x1).backward()
    return type(calls[0][1]).__name__


expected = "Tensor"  # its gradient is computed
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
