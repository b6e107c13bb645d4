# torch 1.8.0: hookcheck repro 28b34049cda23997 --clause OB-05 --kind global_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module under no_grad warns although the hook returns None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x, a0):
        with torch.no_grad():
            return torch.relu_(x.copy_(a0))


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = Net()
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(torch.ones((), requires_grad=True), torch.ones(())).backward()
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
