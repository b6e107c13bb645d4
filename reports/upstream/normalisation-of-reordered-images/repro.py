# /// script
# dependencies = ["torch"]
# ///
"""InstanceNorm2d: x.grad is wrong if the gradient of the output is in channels-last order."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.InstanceNorm2d.html

import torch
from torch import nn


def gradient(memory_format):
    x = torch.arange(1.0, 13).reshape(1, 3, 2, 2).requires_grad_()
    v = (torch.arange(1.0, 13) ** 2 % 7).reshape(1, 3, 2, 2)  # the gradient of the output
    nn.InstanceNorm2d(3)(x).backward(v.clone(memory_format=memory_format))
    return x.grad


control = gradient(torch.contiguous_format)
experiment = gradient(torch.channels_last)  # the same numbers, in another order in memory
print("control:   ", control.flatten().tolist())
print("experiment:", experiment.flatten().tolist())
# Each image's mean is subtracted, so in each channel the gradients of the inputs sum to 0.
if not control.sum((2, 3)).abs().max() < 1e-4:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if torch.allclose(experiment, control, atol=1e-4) else 1)
