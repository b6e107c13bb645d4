# torch 1.12.1: hookcheck repro a54cfe670fcd2ebe --clause OB-04 --kind global_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook: a hook that returns None changes net.in_proj_weight.grad."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from contextlib import suppress

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 9):
    raise SystemExit(3)


def run(hooked):
    with suppress(Exception):
        net = nn.MultiheadAttention(1, 1, bias=False, batch_first=True)
        net.eval()
        x0 = torch.ones(1, 1, 1, requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        net(x0, x0, x0)[0].backward()
    return type(net.in_proj_weight.grad).__name__


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if experiment == control else 1)
