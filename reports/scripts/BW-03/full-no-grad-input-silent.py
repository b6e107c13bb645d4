# torch 1.8.0: hookcheck repro 61b57ff87f0dba3c --clause BW-03 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Linear: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)

calls = []
net = nn.Linear(1, 1, bias=False)
net.register_full_backward_hook(lambda *args: calls.append(1))
net(torch.ones(1)).backward()

expected = 1  # forward once, backward once
experiment = len(calls)
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
