# /// script
# dependencies = ["torch"]
# ///
"""quantization.convert keeps forward hooks of a module, and drops its hooks on state dicts."""
# https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.convert.html

import torch
from torch import nn

try:
    from torch.ao import quantization
except ImportError:
    raise SystemExit(3) from None

if not hasattr(nn.Module, "register_state_dict_pre_hook"):
    raise SystemExit(3)

calls = []
net = nn.Sequential(nn.Linear(2, 2)).eval()
net.qconfig = quantization.default_qconfig
prepared = quantization.prepare(net)
prepared(torch.ones(1, 2))
prepared[0].register_forward_hook(lambda module, args, output: calls.append("forward"))
prepared[0].register_state_dict_pre_hook(lambda *args: calls.append("state_dict"))


def called(net, x):
    calls.clear()
    net[0](x)
    net.state_dict()
    return list(calls)


control = called(prepared, torch.ones(1, 2))
quantised = torch.quantize_per_tensor(torch.ones(1, 2), 0.1, 0, torch.quint8)
experiment = called(quantization.convert(prepared), quantised)
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["forward", "state_dict"] else 0 if experiment == control else 1)
