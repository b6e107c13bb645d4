# torch 1.8.0: hookcheck repro ab3d55917ab8fc53 --clause OB-01 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on LSTM: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def run(hooked):
    try:
        net = nn.LSTM(1, 2, bias=False, proj_size=1)
        x0 = torch.ones(1, 1, 1, requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(x0)[1][0].backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
