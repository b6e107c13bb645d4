# torch 2.15.0: hookcheck repro ca3bd5b4727b2e7c --clause OB-01 --kind full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_pre_hook on Linear: NotImplementedError: You must implement the jvp …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn
from torch.autograd import forward_ad

if not hasattr(nn.Module, "register_full_backward_pre_hook"):
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


def run(hooked):
    try:
        net = nn.Linear(1, 1, bias=False)
        x = torch.ones(1)
        if hooked:
            net.register_full_backward_pre_hook(lambda *args: None)
        with_tangents(net, x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
assert control is None, "the control fails"
raise SystemExit(0 if experiment is None else 1)
