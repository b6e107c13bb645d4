# torch 2.13.0: hookcheck repro 72c664bef3b68c19 --clause OB-05 --kind multi_grad
# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook on a module of Linear warns although the hook returns None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings
from contextlib import suppress

import torch
from torch import nn

if not hasattr(getattr(torch.autograd, "graph", None), "register_multi_grad_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1)

    def forward(self, x):
        return self.m0(x)


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress(Exception):
            net = Net()
            x = torch.ones(1)
            if hooked:
                torch.autograd.graph.register_multi_grad_hook(
                    [net.m0.weight, net.m0.bias], lambda grads: None
                )
            with torch.autograd.detect_anomaly():
                y = net(x)
                torch.autograd.grad(y, net.m0.bias)
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
