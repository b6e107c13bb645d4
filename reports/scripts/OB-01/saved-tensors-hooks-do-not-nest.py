# torch 1.10.2: hookcheck repro ecd4e0feb5d470e3 --clause OB-01 --kind saved_tensors
# /// script
# dependencies = ["torch"]
# ///
"""saved_tensors_hooks on Linear: RuntimeError: Setting default hooks but they have already …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(getattr(torch.autograd, "graph", None), "saved_tensors_hooks"):
    raise SystemExit(3)


def run():
    try:
        net = nn.Linear(1, 1, bias=False)
        x = torch.ones(1)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
            with torch.autograd.graph.save_on_cpu():
                net(x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if experiment is None else 1)
