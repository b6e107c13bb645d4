# /// script
# dependencies = ["torch"]
# ///
"""ReflectionPad2d on CUDA: with deterministic algorithms x.grad is wrong for narrow images."""
# https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html

import torch
from torch import nn

if not torch.cuda.is_available():
    raise SystemExit(3)


def gradient(deterministic):
    torch.use_deterministic_algorithms(deterministic)
    x = torch.zeros(1, 1, 2, 3, device="cuda", requires_grad=True)
    nn.ReflectionPad2d(1)(x).sum().backward()
    return x.grad


control, experiment = gradient(False), gradient(True)
print("control:   ", control.tolist())
print("experiment:", experiment.tolist())
# Of the sum each gradient is how often its place comes up in the 4 by 5 output: each row twice,
# columns 0 and 2 once, column 1 three times.
expected = torch.tensor([[[[2.0, 6.0, 2.0], [2.0, 6.0, 2.0]]]], device="cuda")
if not torch.equal(control, expected):
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if torch.equal(experiment, expected) else 1)
