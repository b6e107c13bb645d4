# torch 2.13.0: hookcheck repro 83629c7bbd7b76e2 --clause TN-06 --kind multi_grad
# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook under Module.compile: the gradient is a Tensor, not None."""
# https://docs.pytorch.org/docs/stable/autograd.html

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


def run(experiment):
    calls = []
    net = Net()
    torch.autograd.graph.register_multi_grad_hook(
        [net.m0.weight, net.m0.bias, net.m1.weight], torch.compiler.disable(calls.append)
    )
    (compiled_ahead_in_place(net) if experiment else net)(torch.ones(1))
    leaked["h"].backward()
    return type(calls[0][2]).__name__


expected = "NoneType"  # no gradient is computed there
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
