# torch 2.13.0: hookcheck repro 83629c7bbd7b76e2 --clause OB-04 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of Linear under Module.compile: a hook that returns None
changes net.m1.weight.grad."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 2):
    raise SystemExit(3)

leaked = {}


def compiled_ahead_in_place(module):
    module.compile(backend="aot_eager")
    return module


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1)
        self.m1 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        leaked["h"] = h0 = self.m0(x)
        return self.m1(h0)


def run(hooked):
    net = Net()
    if hooked:
        for module in net.modules():
            module.register_backward_hook(torch.compiler.disable(lambda *args: None))
    compiled_ahead_in_place(net)(torch.ones(1))
    leaked["h"].backward()
    return type(net.m1.weight.grad).__name__


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if experiment == control else 1)
