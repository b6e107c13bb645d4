# /// script
# dependencies = ["torch"]
# ///
"""Compiled autograd raises at a full backward hook if one of the outputs is not used."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from contextlib import nullcontext

import torch
from torch import nn

try:
    from torch._dynamo.compiled_autograd import _enable
except ImportError:
    raise SystemExit(3) from None


class Two(nn.Module):
    def forward(self, x):
        return 2 * x, 3 * x


def outcome(hooked, context):
    net = Two()
    if hooked:
        net.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    x = torch.ones(1, requires_grad=True)
    used, _ = net(x)
    try:
        with context:
            used.sum().backward()
    except TypeError as error:
        return f"TypeError: {error}"
    return x.grad.tolist()


eager = outcome(True, nullcontext())
control = outcome(False, _enable(lambda graph: graph.forward))
experiment = outcome(True, _enable(lambda graph: graph.forward))
print("eager, a hook:             ", eager)
print("compiled autograd, no hook:", control)
print("compiled autograd, a hook: ", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if not eager == control == [2] else 0 if experiment == eager else 1)
