# torch 2.15.0: hookcheck repro ecd4e0feb5d470e3 --clause OB-05 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Linear warns although the hook returns None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import sys
import warnings
from contextlib import suppress
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
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress(Exception):
            net = nn.Linear(1, 1, bias=False)
            x = torch.ones(1, 1, 1)
            if hooked:
                net.register_backward_hook(lambda *args: None)
            with torch.autograd.detect_anomaly():
                y = replica(net)(x)
                y.backward()
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
