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


calls = []
net = Net()
net.m0.register_full_backward_hook(lambda *args: calls.append(1))
net(torch.ones(1)).backward()

expected = 2  # forward twice, backward once
experiment = len(calls)
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
