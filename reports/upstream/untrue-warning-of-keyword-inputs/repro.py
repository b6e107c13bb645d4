# /// script
# dependencies = ["torch"]
# ///
"""A full backward hook warns that no input requires grad where a keyword argument does."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def warned(call):
    net = nn.Identity()
    net.register_full_backward_hook(lambda *args: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(net, torch.ones(1, requires_grad=True)).sum().backward()
    return [str(warning.message).split(". ")[0] for warning in caught]


control, experiment = warned(lambda net, x: net(x)), warned(lambda net, x: net(input=x))
print("net(x):      ", control)
print("net(input=x):", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [] else 0 if experiment == control else 1)
