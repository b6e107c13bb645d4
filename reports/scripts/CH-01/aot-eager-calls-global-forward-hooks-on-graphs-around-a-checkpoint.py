# torch 2.15.0: hookcheck repro d044c2047b8245d4 --clause CH-01 --kind acting_forward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_pre_hook on a module under checkpoint under torch.compile: a call of
the first hook is not followed by those of the others."""

import torch
import torch.utils.checkpoint
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7):
    raise SystemExit(3)


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1)
        self.m1 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return self.m1(self.m0(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        return torch.compile(lambda *args: self.part(*args), backend="aot_eager")(x)


def run(experiment):
    calls = []
    net = Net()
    if not experiment:
        net.forward = lambda x: net.part(x)
    handle = torch.nn.modules.module.register_module_forward_pre_hook(
        torch.compiler.disable(lambda *args: calls.append(0))
    )
    for module in net.modules():
        module.register_forward_pre_hook(torch.compiler.disable(lambda *args: calls.append(2)))
        module.register_forward_pre_hook(
            torch.compiler.disable(lambda *args: calls.append(1)), prepend=True
        )
    torch.utils.checkpoint.checkpoint(net, torch.ones(1), use_reentrant=False)
    handle.remove()
    return calls


control, experiment = run(experiment=False), run(experiment=True)
# of one call of a module the first hook, then the second, then the third
print("control:", control, "experiment:", experiment)
if control[:12] != [0, 1, 2] * 4:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment[:12] == [0, 1, 2] * 4 else 1)
