# torch 2.15.0: hookcheck repro 18ed15812039e950 --clause BN-01 --kind global_full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_pre_hook on Linear on tensors with tangents: NotImplementedError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn
from torch.autograd import forward_ad

if not hasattr(nn.Module, "register_full_backward_pre_hook"):
    raise SystemExit(3)


def with_tangents(module, arg):
    with forward_ad.dual_level():
        y = module(forward_ad.make_dual(arg, torch.ones_like(arg)))
        primals = forward_ad.unpack_dual(y).primal
    return primals


def run(hooked):
    net = nn.Linear(1, 1, bias=False)
    if hooked:
        net.register_full_backward_pre_hook(lambda *args: None)
    with_tangents(net, torch.ones(1)).backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
