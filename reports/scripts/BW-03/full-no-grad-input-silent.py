# torch 1.8.0: hookcheck repro 61b57ff87f0dba3c --clause BW-03 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Linear: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def run():
    calls = []
    net = nn.Linear(1, 1, bias=False)
    x = torch.ones(1)
    net.register_full_backward_hook(lambda *args: calls.append(1))
    net(x).backward()
    return len(calls)


expected = 1  # forward once, backward once
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
