# torch 2.15.0: hookcheck repro 86aca1103a9b6da0 --clause NG-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear and clone on tensors with tangents under
inference_mode: …"""
# https://github.com/pytorch/pytorch/issues/65335

import torch
from torch import nn
from torch.autograd import forward_ad

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(1, 1)
        self.rest = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        with torch.inference_mode():
            h0 = self.part(x)
        return self.rest(h0.clone())


def run(hooked):
    net = Net()
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    arg = torch.ones(1, requires_grad=True)
    with forward_ad.dual_level():
        net(forward_ad.make_dual(arg, torch.ones_like(arg)))


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
