# torch 2.1.2: hookcheck repro 6277f4238d1ee93f --clause AG-01 --kind acting_forward
# /// script
# dependencies = ["torch"]
# ///
"""Linear: NotImplementedError: Cannot copy out of meta tensor; no data!."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
import torch.utils.checkpoint
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def run(experiment):
    try:
        net = nn.Linear(1, 1)
        x = torch.ones(1)
        if experiment:
            with torch.device("meta"):
                with torch.autograd.graph.save_on_cpu():
                    torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
        else:
            with torch.autograd.graph.save_on_cpu():
                torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
