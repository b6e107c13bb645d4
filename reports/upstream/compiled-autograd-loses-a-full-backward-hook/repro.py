# /// script
# dependencies = ["torch"]
# ///
"""Compiled autograd loses the full hook of a compiled layer whose input requires no grad."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from contextlib import nullcontext

import torch
from torch import nn

try:
    from torch._dynamo.compiled_autograd import _enable
except ImportError:
    raise SystemExit(3) from None


def calls(context):
    log = []
    net = nn.Linear(1, 1)
    net.register_full_backward_hook(lambda *args: log.append("hook"))
    with context:
        torch.compile(lambda x: net(x), backend="aot_eager")(torch.ones(1, 1)).sum().backward()
    return log


# In this order: a control that is compiled first is compiled for both.
experiment = calls(_enable(lambda graph: graph.forward))
torch.compiler.reset()
control = calls(nullcontext())
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["hook"] else 0 if experiment == control else 1)
