# torch 1.8.0: hookcheck repro 1d1ffc4a0c57c325 --clause P2-11 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on ReLU: grad_output[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m1 = nn.ReLU()

    def forward(self, x0, x1):
        return torch.maximum(x0, self.m1(x1))


def run(experiment):
    calls = []
    net = Net()
    if not experiment:
        net.forward = lambda x0, x1: net.m1(x1)
    x1 = torch.tensor(1.0, requires_grad=True)
    net.m1.register_backward_hook(lambda _, grad_input, grad_output: calls.append(grad_output))
    net(torch.tensor(1.0), x1).backward()
    return calls[0][0].item()


expected = 0.5  # chain rule: Maximum, then ReLU
expected_of_control = 1.0  # chain rule: ReLU
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
