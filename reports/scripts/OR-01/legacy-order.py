# torch 2.13.0: hookcheck repro f93d3897450b5617 --clause OR-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Sequential: the hook of net.0 is called before that of net."""
# https://docs.pytorch.org/docs/stable/notes/autograd.html

import torch
from torch import nn


def run(register):
    calls = []
    net = nn.Sequential(nn.Linear(1, 1))
    for name, module in net.named_modules(prefix="net"):
        getattr(module, register)(lambda *args, name=name: calls.append(name))
    net(torch.ones(1)).backward()
    return calls


control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
# backward meets the outputs of an enclosing module first
print("control:", control, "experiment:", experiment)
if not control.index("net") < control.index("net.0"):
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment.index("net") < experiment.index("net.0") else 1)
