# torch 1.9.1: hookcheck repro aeb4b37714cec7b7 --clause BW-02 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Conv2d: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 9):
    raise SystemExit(3)


def run(hooked):
    try:
        net = nn.Conv2d(1, 1, (1, 1), padding=(1, 0))
        x = torch.ones(1, 1, 1, 1, requires_grad=True)
        v_z = torch.ones(1, 1, 3, 1)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        with torch.inference_mode():
            net(x)
        net(x).backward(v_z)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
