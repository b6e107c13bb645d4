# torch 1.8.0: hookcheck repro 83fcc2e480cb4a84 --clause BW-02 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on RNNCell: AttributeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def run(hooked):
    try:
        net = nn.RNNCell(1, 1)
        x0 = torch.ones(1, 1)
        x1 = torch.ones(1, 1, requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(x0, x1).backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
