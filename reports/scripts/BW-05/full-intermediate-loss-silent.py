# torch 2.15.0: hookcheck repro 626c7c68854e655e --clause BW-05 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear: the hook is called once, not twice."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)

leaked = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        leaked["h0"] = h0 = self.m0(x)
        return h0


def run(experiment):
    calls = []
    net = Net()
    x = torch.ones(1, requires_grad=True)
    net.register_full_backward_hook(lambda *args: calls.append(1))
    if experiment:
        net(x).backward(retain_graph=True)
        leaked["h0"].backward()
    else:
        y = net(x)
        y.backward(retain_graph=True)
        y.backward()
    return len(calls)


expected = 2  # forward once, backward twice
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
