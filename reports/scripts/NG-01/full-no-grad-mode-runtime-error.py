# torch 1.9.1: hookcheck repro 38b5842795577cab --clause NG-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Conv2d: RuntimeError."""
# https://github.com/pytorch/pytorch/issues/65335

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def run(hooked):
    try:
        net = nn.Conv2d(1, 1, (1, 1), stride=(1, 2), padding=(1, 0), dilation=(1, 2))
        x = torch.ones(1, 1, 1, 1, requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        with torch.no_grad():
            net(x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
