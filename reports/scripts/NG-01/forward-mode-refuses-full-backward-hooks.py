# torch 2.15.0: hookcheck repro 86aca1103a9b6da0 --clause NG-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear and clone: NotImplementedError: You must …"""
# https://github.com/pytorch/pytorch/issues/65335

import torch
from torch import nn
from torch.autograd import forward_ad

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def with_tangents(module, *args):
    with forward_ad.dual_level():
        dual = (
            forward_ad.make_dual(arg, torch.ones_like(arg)) if arg.is_floating_point() else arg
            for arg in args
        )
        y = module(*dual)
        primals = [
            forward_ad.unpack_dual(each).primal for each in (y if isinstance(y, tuple) else (y,))
        ]
    return tuple(primals) if isinstance(y, tuple) else primals[0]


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
    try:
        net = Net()
        x = torch.ones(1, requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        with_tangents(net, x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
assert control is None, "the control fails"
raise SystemExit(0 if experiment is None else 1)
