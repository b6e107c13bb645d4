# torch 2.15.0: hookcheck repro 327d0e326c368509 --clause NG-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook in a replica of DataParallel under no_grad: RuntimeError."""
# https://github.com/pytorch/pytorch/issues/65335

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


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(1, 1)
        self.rest = nn.Linear(1, 1)

    def forward(self, x):
        with torch.no_grad():
            h0 = self.part(x)
        return self.rest(h0)


def run(hooked):
    net = Net()
    if hooked:
        net.register_backward_hook(lambda *args: None)
    replica(net)(torch.ones(1)).backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
