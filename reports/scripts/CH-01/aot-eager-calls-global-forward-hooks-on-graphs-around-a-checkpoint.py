# torch 2.15.0: hookcheck repro d044c2047b8245d4 --clause CH-01 --kind acting_forward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_pre_hook on a module: a call of the first hook is not followed by …"""
# no control: with one the script would pass 60 lines

import torch
import torch.utils.checkpoint
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7):
    raise SystemExit(3)


def compiled(module):
    return torch.compile(lambda *args: module(*args), backend="aot_eager")


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
        return compiled(self.part)(x)


calls = []
net = Net()


def acting(link):
    return lambda module, args: calls.append(link)


torch.nn.modules.module.register_module_forward_pre_hook(torch.compiler.disable(acting(0)))
for module in net.modules():
    module.register_forward_pre_hook(torch.compiler.disable(acting(2)))
    module.register_forward_pre_hook(torch.compiler.disable(acting(1)), prepend=True)
torch.utils.checkpoint.checkpoint(net, torch.ones(1), use_reentrant=False)

experiment = calls
# of one call of a module the first hook, then the second, then the third
print("experiment:", experiment)
raise SystemExit(0 if experiment[:12] == [0, 1, 2] * 4 else 1)
