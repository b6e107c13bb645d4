# /// script
# dependencies = ["torch"]
# ///
"""A full backward hook turns a subclass into a Tensor where forward and backward are compiled."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

try:
    from torch._dynamo.compiled_autograd import _enable
except ImportError:
    raise SystemExit(3) from None


class Sub(torch.Tensor):
    pass


class Net(nn.Module):
    def forward(self, x):
        return (2 * x).as_subclass(Sub)


def output(hooked):
    torch.compiler.reset()
    net = Net()
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    with _enable(lambda graph: graph.forward):
        y = torch.compile(lambda x: net(x), backend="eager")(torch.ones(1, requires_grad=True))
    return type(y).__name__


control, experiment = output(hooked=False), output(hooked=True)
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != "Sub" else 0 if experiment == control else 1)
