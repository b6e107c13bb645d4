# torch 2.15.0: hookcheck repro a1897c19df9df7b3 --clause AG-02 --kind full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_pre_hook: a hook that returns None changes g0[0]."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_pre_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1)

    def forward(self, x):
        h0 = self.m0(x)
        return (h0, h0)


def run(hooked):
    net = Net()
    if hooked:
        net.register_full_backward_pre_hook(lambda *args: None)
    y = net(torch.ones(1))
    y[1].backward(inputs=[y[0]])
    g0 = y[0].grad
    return type(g0).__name__


expected = "Tensor"  # its gradient is computed
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
