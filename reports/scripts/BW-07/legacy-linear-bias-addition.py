# torch 1.8.0: hookcheck repro 5eefd67eb59ddc3f --clause BW-07 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Linear: grad_input has not 1 entry."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run(experiment):
    calls = []
    if experiment:
        net = nn.Linear(1, 1)
        x = torch.ones(1)
    else:
        net = nn.Tanh()
        x = torch.ones(1, requires_grad=True)
    net.register_backward_hook(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(x).backward()
    return len(calls[0])


expected = 1  # one for each positional argument
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
