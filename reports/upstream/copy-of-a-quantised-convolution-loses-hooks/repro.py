# /// script
# dependencies = ["torch"]
# ///
"""copy.deepcopy of a quantised convolution loses all hooks."""
# https://docs.pytorch.org/docs/stable/generated/torch.ao.nn.quantized.Conv2d.html

import copy

import torch
from torch import nn

try:
    from torch.ao import quantization
except ImportError:
    raise SystemExit(3) from None


def quantised(part, x):
    net = nn.Sequential(part).eval()
    net.qconfig = quantization.default_qconfig
    prepared = quantization.prepare(net)
    prepared(x)
    return quantization.convert(prepared)[0]


def called(module, x):
    calls = []
    module.register_forward_pre_hook(lambda *args: calls.append("forward pre-hook"))
    module.register_forward_hook(lambda *args: calls.append("forward hook"))
    module._register_state_dict_hook(lambda *args: calls.append("state_dict hook"))
    other = copy.deepcopy(module)
    other(torch.quantize_per_tensor(x, 0.1, 0, torch.quint8))
    other.state_dict()
    return calls


row, image = torch.ones(1, 1), torch.ones(1, 1, 1, 1)
control = called(quantised(nn.Linear(1, 1), row), row)
experiment = called(quantised(nn.Conv2d(1, 1, 1), image), image)
print("called on a copy of a quantised Linear:     ", ", ".join(control))
print("called on a copy of a quantised convolution:", ", ".join(experiment) or "none")
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if len(control) != 3 else 0 if experiment == control else 1)
