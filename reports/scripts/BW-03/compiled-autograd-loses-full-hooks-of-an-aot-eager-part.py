# torch 2.15.0: hookcheck repro 1ea9db957c49b58b --clause BW-03 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Linear under compiled autograd under torch.compile: the hook
is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


def compiled(module):
    return torch.compile(lambda *args: module(*args), backend="aot_eager")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1)

    def forward(self, x):
        return compiled(self.m0)(x)


def run(experiment):
    calls = []
    net = Net()
    x = torch.ones(1) if experiment else torch.ones(1, requires_grad=True)
    net.m0.register_full_backward_hook(torch.compiler.disable(lambda *args: calls.append(1)))
    from torch._dynamo import compiled_autograd

    with compiled_autograd._enable(lambda graph: graph.forward):
        net(x).backward()
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
