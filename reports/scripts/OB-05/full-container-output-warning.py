# torch 2.15.0: hookcheck repro 697c0639daf8945b --clause OB-05 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of neg warns although the hook returns None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        return {"left": (-x)}


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = Net()
        x = torch.ones((), requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(x)["left"].backward()
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
