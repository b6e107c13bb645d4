# torch 2.15.0: hookcheck repro e4e17cd602239b15 --clause BW-02 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on AdaptiveMaxPool2d in a replica of DataParallel: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import sys
from unittest import mock

import torch
from torch import nn
from torch.nn.parallel import replicate


def replica(module):
    # As DataParallel makes it, whose broadcast knows no CPU.
    there = mock.patch.object(
        sys.modules["torch.nn.parallel.replicate"],
        "_broadcast_coalesced_reshape",
        lambda tensors, devices, detach=False: [[tensor.view_as(tensor) for tensor in tensors]],
    )
    with there:
        return replicate(module, [0])[0]


def run(hooked):
    net = nn.AdaptiveMaxPool2d(1, return_indices=True)
    x = torch.ones(1, 1, 1, requires_grad=True)
    if hooked:
        net.register_backward_hook(lambda *args: None)
    replica(net)(x)[0].backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
