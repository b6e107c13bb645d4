# torch 2.15.0: hookcheck repro 0258ef9530fcc475 --clause OB-05 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Softplus warns although the hook returns None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

import torch
from torch import nn


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = nn.Softplus()
        x0 = torch.ones((), requires_grad=True)
        if hooked:
            net.register_backward_hook(lambda *args: None)
        net(x0)
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
