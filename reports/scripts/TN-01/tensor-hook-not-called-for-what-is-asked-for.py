# torch 1.8.0: hookcheck repro 36d47547ac59f7a0 --clause TN-01 --kind tensor
# /// script
# dependencies = ["torch"]
# ///
"""register_hook on GRU: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch import nn


def run(experiment):
    calls = []
    net = nn.GRU(1, 1)
    x = torch.ones(1, 1, 1, requires_grad=True)
    x.register_hook(calls.append)
    torch.autograd.grad(net(x)[0], x if experiment else [])
    return len(calls)


expected = 1  # backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
