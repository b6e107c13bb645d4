# torch 2.13.0: hookcheck repro e0b4cdbd53076db5 --clause OB-05 --kind global_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_backward_hook on a module of Linear and Tanh under detect_anomaly under
torch.compile warns although the hook returns None: Error detected in TanhBackward0."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings
from contextlib import suppress

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1)
        self.m1 = nn.Tanh()

    def forward(self, x):
        return self.m1(self.m0(x))


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress(Exception):
            net = Net()
            x = torch.ones(1)
            if hooked:
                torch.nn.modules.module.register_module_backward_hook(
                    torch.compiler.disable(lambda *args: None)
                )
            with torch.autograd.detect_anomaly():
                torch.compile(net, backend="eager")(x).backward()
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
