# torch 2.11.0: hookcheck repro 61b57ff87f0dba3c --clause OB-05 --kind full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_pre_hook on Linear warns although the hook returns None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_pre_hook"):
    raise SystemExit(3)


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = nn.Linear(1, 1, bias=False)
        x = torch.ones(1)
        if hooked:
            net.register_full_backward_pre_hook(lambda *args: None)
        net(x).backward()
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
