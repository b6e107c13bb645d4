# torch 2.15.0: hookcheck repro 2f6646aba1d2c3f0 --clause BW-02 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Linear: RuntimeError: You are trying to call the hook of a dead …"""
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
    try:
        net = nn.Linear(1, 1)
        x = torch.ones(1, requires_grad=True)
        if hooked:
            net.register_backward_hook(lambda *args: None)
        replica(net)(x).backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
assert control is None, "the control fails"
raise SystemExit(0 if experiment is None else 1)
