# torch 2.15.0: hookcheck repro 3e891f9fb7d71195 --clause GI-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Tanhshrink: grad_input[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run(register):
    calls = []
    net = nn.Tanhshrink()
    x0 = torch.tensor(1.0, requires_grad=True)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(x0).backward()
    return calls[0][0].item()


expected = 0.58002566  # chain rule: Tanhshrink
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
