# torch 2.15.0: hookcheck repro 4a27eea890afb008 --clause OB-01 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Linear: NotImplementedError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def run(hooked):
    try:
        net = nn.Linear(1, 1, bias=False)
        x = torch.ones(1, 1).to_sparse_csr().requires_grad_()
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
