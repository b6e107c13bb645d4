# torch 1.8.0: hookcheck repro 5d2ecb6966a784ed --clause GO-03 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on LayerNorm: grad_output has not 1 entry."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run():
    calls = []
    net = nn.LayerNorm((1,))
    x0 = torch.ones(1)
    net.register_backward_hook(lambda module, grad_input, grad_output: calls.append(grad_output))
    net(x0).backward()
    return len(calls[0])


expected = 1  # one for each output
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
