# torch 1.8.0: hookcheck repro 1d1ffc4a0c57c325 --clause GO-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Threshold: grad_output[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
# no control: no run that is one step away passes

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Threshold(0.0, 0.0)

    def forward(self, x0, x1):
        return torch.maximum(self.m0(x0), x1)


calls = []
net = Net()
x0 = torch.tensor(1.0, requires_grad=True)
net.m0.register_full_backward_hook(
    lambda module, grad_input, grad_output: calls.append(grad_output)
)
net(x0, torch.tensor(1.0)).backward()

expected = 0.5  # chain rule: Maximum, then Threshold
experiment = calls[0][0].item()
print("experiment:", experiment)
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
