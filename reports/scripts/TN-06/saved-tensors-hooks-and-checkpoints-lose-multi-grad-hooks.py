# torch 2.1.2: hookcheck repro df244cbce25ada17 --clause TN-06 --kind multi_grad
# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook on Linear: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/autograd.html

import torch
import torch.utils.checkpoint
from torch import nn

if not hasattr(getattr(torch.autograd, "graph", None), "register_multi_grad_hook"):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)
    x = torch.ones(1, requires_grad=True)
    torch.autograd.graph.register_multi_grad_hook([net.weight, net.bias, x], calls.append)
    if experiment:
        with torch.autograd.graph.save_on_cpu():
            y = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
        y.backward()
    else:
        torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).backward()
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
