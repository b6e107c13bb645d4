# torch 1.8.0: hookcheck repro 39d28c7499ab81c6 --clause BW-12 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Linear: writing in place raises another error."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def run(hooked):
    try:
        net = nn.Linear(1, 1, bias=False)
        x = torch.ones(1, requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        y = net(x)
        y.mul_(2.0)
        y.backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if "modified inplace" in str(experiment) else 1)
