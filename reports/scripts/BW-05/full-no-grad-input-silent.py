# torch 1.8.0: hookcheck repro 67366420d37184dd --clause BW-05 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Linear: the hook is called once, not twice."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x1):
        return self.m0(self.m0(x1))


def run(experiment):
    calls = []
    net = Net()
    x1 = torch.ones(1) if experiment else torch.ones(1, requires_grad=True)
    net.m0.register_full_backward_hook(lambda *args: calls.append(1))
    net(x1).backward()
    return len(calls)


expected = 2  # forward twice, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
