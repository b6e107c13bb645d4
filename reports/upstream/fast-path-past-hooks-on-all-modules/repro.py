# /// script
# dependencies = ["torch"]
# ///
"""Hooks on all modules do not run in the fast path of a TransformerEncoderLayer."""

import inspect

import torch
from torch import nn

if "batch_first" not in inspect.signature(nn.TransformerEncoderLayer).parameters:
    raise SystemExit(3)

layer, x = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(), torch.ones(2, 3, 4)
names, calls = {module: name or "the layer" for name, module in layer.named_modules()}, []
nn.modules.module.register_module_forward_hook(
    lambda module, args, output: calls.append(names[module])
)


def run():
    calls.clear()
    layer(x)
    return [*calls]


control = run()
with torch.no_grad():
    experiment = run()
inside = "self_attn dropout1 norm1 linear1 dropout linear2 dropout2 norm2"
expected = [*inside.split(), "the layer"]
print("control:   ", *control)
print("experiment:", *experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
