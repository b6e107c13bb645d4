# torch 2.1.2: hookcheck repro a69d985621bcdd40 --clause OB-07 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Linear: a hook that returns None changes y."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


class Sub(torch.Tensor):
    """A tensor of a class of its own."""


def run(hooked):
    net = nn.Linear(1, 1, bias=False)
    x = torch.ones(1).as_subclass(Sub).requires_grad_(False)
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    y = net(x)
    return type(y).__name__


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if experiment == control else 1)
