# /// script
# dependencies = ["torch"]
# ///
"""copy.deepcopy of a GraphModule loses forward hooks, backward hooks and state_dict pre-hooks."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import copy

import torch
from torch import nn

try:
    from torch import fx
except ImportError:
    raise SystemExit(3) from None

if not hasattr(nn.Module, "register_state_dict_pre_hook"):
    raise SystemExit(3)


def called(net):
    calls = []
    net.register_forward_hook(lambda *args: calls.append("forward hook"))
    net.register_full_backward_hook(lambda *args: calls.append("backward hook"))
    net.register_state_dict_pre_hook(lambda *args: calls.append("state_dict pre-hook"))
    net._register_state_dict_hook(lambda *args: calls.append("state_dict hook"))
    other = copy.deepcopy(net)
    other(torch.ones(1, 1, requires_grad=True)).sum().backward()
    other.state_dict()
    return calls


net = nn.Sequential(nn.Linear(1, 1))
control = called(copy.deepcopy(net))
experiment = called(fx.symbolic_trace(net))
print("called on a copy of the module:     ", ", ".join(control))
print("called on a copy of its GraphModule:", ", ".join(experiment))
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if len(control) != 4 else 0 if experiment == control else 1)
