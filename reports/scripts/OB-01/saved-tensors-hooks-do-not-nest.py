# torch 1.10.2: hookcheck repro 718bee04d55e3706 --clause OB-01 --kind saved_tensors
# /// script
# dependencies = ["torch"]
# ///
"""saved_tensors_hooks on a module under save_on_cpu: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(getattr(torch.autograd, "graph", None), "saved_tensors_hooks"):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        return x


def run(experiment):
    net = Net()
    x = torch.ones((), requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        if experiment:
            with torch.autograd.graph.save_on_cpu():
                y = net(x)
            y.backward()
        else:
            net(x).backward()


run(experiment=False)  # the control raises nothing
try:
    run(experiment=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
