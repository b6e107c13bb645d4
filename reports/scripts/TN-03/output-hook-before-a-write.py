# torch 1.12.1: hookcheck repro ed59ae3cbc551727 --clause TN-03 --kind output_tensor
# /// script
# dependencies = ["torch"]
# ///
"""register_hook on a module of ConvTranspose2d and mul_: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 11):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.ConvTranspose2d(1, 1, (1, 1), bias=False)

    def forward(self, x):
        return self.m0(x).mul_(2.0)


def run(experiment):
    calls = []
    net = Net() if experiment else nn.ConvTranspose2d(1, 1, (1, 1), bias=False)
    x = torch.ones(1, 1, 1)

    def watch(module, args, output):
        if output.requires_grad:
            output.register_hook(calls.append if module is net else lambda *grads: None)

    for module in net.modules():
        module.register_forward_hook(watch)
    net(x).backward()
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
