# torch 1.8.0: hookcheck repro 90e17171c6c11ac7 --clause OB-05 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook under detect_anomaly warns although the hook returns None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings
from contextlib import suppress

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(2, 4, bias=False)
        self.m2 = nn.LSTM(4, 1, num_layers=2, bias=False, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.m2(self.m0(x))[1][1]


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress(Exception):
            net = Net()
            x = torch.ones(2, 1, 2)
            v_y0 = torch.ones(4, 2, 1)
            if hooked:
                for module in net.modules():
                    module.register_full_backward_hook(lambda *args: None)
            with torch.autograd.detect_anomaly():
                net(x).backward(v_y0)
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
