# /// script
# dependencies = ["torch"]
# ///
"""Under compiled autograd hooks of Nodes and register_backward_hook get lists, not tuples."""
# https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.register_hook.html

from contextlib import nullcontext

import torch
from torch import nn

try:
    from torch._dynamo.compiled_autograd import _enable
except ImportError:
    raise SystemExit(3) from None


def arguments(context):
    types = {}

    def hook(name):
        return lambda *args: types.update({name: [type(a).__name__ for a in args[-2:]]})

    net = nn.Tanh()
    net.register_backward_hook(hook("register_backward_hook"))
    y = net(torch.ones(1, requires_grad=True))
    y.grad_fn.register_hook(hook("Node.register_hook"))
    with context:
        y.sum().backward()
    return types


control, experiment = arguments(nullcontext()), arguments(_enable(lambda graph: graph.forward))
print("control:   ", control)
print("experiment:", experiment)
if set(map(tuple, control.values())) != {("tuple", "tuple")}:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment == control else 1)
