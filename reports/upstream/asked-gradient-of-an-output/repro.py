# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear: a hook that returns None changes g0[0]."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)
if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 9):
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
    x = torch.ones(1)
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    y = net(x)
    y[1].backward(inputs=[y[0]])
    g0 = (y[0].grad,)
    return type(g0[0]).__name__


expected = "Tensor"  # its gradient is computed
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
