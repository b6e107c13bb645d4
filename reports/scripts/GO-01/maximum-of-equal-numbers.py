# torch 1.8.0: hookcheck repro 1d1ffc4a0c57c325 --clause GO-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Threshold: grad_output[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

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


def run(experiment):
    calls = []
    net = Net()
    if not experiment:
        net.forward = lambda x0, x1: net.m0(x0)
    x0 = torch.tensor(1.0, requires_grad=True)
    net.m0.register_full_backward_hook(lambda _, grad_input, grad_output: calls.append(grad_output))
    net(x0, torch.tensor(1.0)).backward()
    return calls[0][0].item()


expected = 0.5  # chain rule: Maximum, then Threshold
expected_of_control = 1.0  # chain rule: Threshold
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
