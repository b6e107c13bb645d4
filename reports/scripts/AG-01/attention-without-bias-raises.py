# torch 1.12.1: hookcheck repro a54cfe670fcd2ebe --clause AG-01 --kind acting_forward
# /// script
# dependencies = ["torch"]
# ///
"""MultiheadAttention: AttributeError: 'NoneType' object has no attribute 'is_cuda'."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 9):
    raise SystemExit(3)


def run(experiment):
    try:
        net = nn.MultiheadAttention(1, 1, bias=False, batch_first=True)
        if experiment:
            net.eval()
        x0 = torch.ones(1, 1, 1)
        net(x0, x0, x0)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
