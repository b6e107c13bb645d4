# torch 2.15.0: hookcheck repro 36353b584bfafbf6 --clause BW-03 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Linear in a replica of DataParallel: RuntimeError."""
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
    net = nn.Linear(1, 1, bias=False)
    if hooked:
        net.register_backward_hook(lambda *args: None)
    replica(net)(torch.ones(1)).backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
