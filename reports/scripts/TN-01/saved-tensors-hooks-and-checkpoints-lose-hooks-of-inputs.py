# torch 2.1.2: hookcheck repro df244cbce25ada17 --clause TN-01 --kind tensor
# /// script
# dependencies = ["torch"]
# ///
"""register_hook on Linear: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
import torch.utils.checkpoint
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 11):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)
    x = torch.ones(1, requires_grad=True)
    x.register_hook(calls.append)
    if experiment:
        with torch.autograd.graph.save_on_cpu():
            y = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
        y.backward()
    else:
        torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).backward()
    return len(calls)


expected = 1  # backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
