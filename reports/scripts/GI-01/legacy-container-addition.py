# torch 2.15.0: hookcheck repro 19e75d9f595fe971 --clause GI-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of Linear and add: grad_input[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, a, b):
        return self.m0(a) + b


def run(register):
    calls = []
    net = Net()
    nn.init.constant_(net.m0.weight, 1.71875)
    a = torch.tensor([-1.96875], requires_grad=True)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(a, torch.tensor(1.34375)).backward()
    return calls[0][0][0].item()


expected = 1.71875  # chain rule: Add da = v, then Linear dx = v W̄
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 8e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 8e-04 else 1)
