# torch 2.15.0: hookcheck repro 6c8e38bc290b18e5 --clause OB-01 --kind multi_grad
# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook on Linear: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(getattr(torch.autograd, "graph", None), "register_multi_grad_hook"):
    raise SystemExit(3)


def run(hooked):
    try:
        net = nn.Linear(1, 1)
        x = torch.ones(1).to_mkldnn().requires_grad_()
        if hooked:
            torch.autograd.graph.register_multi_grad_hook(
                [net.weight, net.bias, x], lambda grads: None
            )
        net(x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
