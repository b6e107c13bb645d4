# torch 2.15.0: hookcheck repro af1c0819512423c3 --clause TN-06 --kind multi_grad
# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook on a module: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/autograd.html

import torch
from torch import nn

if not hasattr(getattr(torch.autograd, "graph", None), "register_multi_grad_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        return x


def run(experiment):
    calls = []
    net = Net()
    x = torch.ones((), requires_grad=True)
    torch.autograd.graph.register_multi_grad_hook([x], calls.append)
    net(x if experiment else x.clone()).backward()
    return len(calls)


expected = 1  # backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
