# torch 1.8.0: hookcheck repro 61b57ff87f0dba3c --clause BW-03 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Linear: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1, bias=False)
    x = torch.ones(1) if experiment else torch.ones(1, requires_grad=True)
    net.register_full_backward_hook(lambda *args: calls.append(1))
    net(x).backward()
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
