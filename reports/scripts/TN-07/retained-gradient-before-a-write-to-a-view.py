# torch 2.1.2: hookcheck repro e50c55d4e01a3bbc --clause TN-07 --kind output_retain_grad
# /// script
# dependencies = ["torch"]
# ///
"""retain_grad on a module of select and mul_: the gradient is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html

import torch
from torch import nn


class M0(nn.Module):
    def forward(self, x):
        return x * 2.0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = M0()

    def forward(self, x):
        h0 = self.m0(x)
        h0.select(-1, 0).mul_(2.0)
        return h0


class Control(Net):
    def forward(self, x):
        h0 = self.m0(x)
        h0.select(-1, 0).mul_(2.0)
        return h0.clone()


def run(experiment):
    calls = []
    net = (Net if experiment else Control)()
    x = torch.tensor([1.0], requires_grad=True)

    def watch(module, args, output):
        if output.requires_grad:
            output.retain_grad()
            if module is net:
                calls.append(output)

    for module in net.modules():
        module.register_forward_hook(watch)
    net(x).backward()
    return calls[0].grad[0].item()


expected = 1.0  # chain rule: Taken, then Pasted, then ScaleInplace
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
