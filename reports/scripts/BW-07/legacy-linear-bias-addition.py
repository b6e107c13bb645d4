# torch 1.8.0: hookcheck repro 5eefd67eb59ddc3f --clause BW-07 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Linear: grad_input has not 1 entry."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
# no control: no run that is one step away passes

import torch
from torch import nn

calls = []
net = nn.Linear(1, 1)
net.register_backward_hook(lambda _, grad_input, grad_output: calls.append(grad_input))
net(torch.ones(1)).backward()

expected = 1  # one for each positional argument
experiment = len(calls[0])
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
