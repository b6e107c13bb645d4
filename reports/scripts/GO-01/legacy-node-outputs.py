# torch 2.15.0: hookcheck repro 375ca7fc618e4469 --clause GO-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module: grad_output[1] has another shape than it should."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class M1(nn.Module):
    def __init__(self):
        super().__init__()
        self.m1 = nn.Linear(2, 1, bias=False)

    def forward(self, x):
        h1 = x.unbind(0)
        return (self.m1(h1[1]), h1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m1 = M1()

    def forward(self, x):
        h2 = self.m1(x)
        return (h2[1], h2[0])


def run(register):
    calls = []
    net = Net()
    x = torch.ones(2, 2, requires_grad=True)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_output))
    net(x)[1].backward()
    return tuple(calls[0][1].shape)


expected = (1,)  # a gradient has the shape of its tensor
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
