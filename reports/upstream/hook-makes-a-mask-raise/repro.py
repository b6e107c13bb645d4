# /// script
# dependencies = ["torch"]
# ///
"""A forward hook on a TransformerEncoderLayer makes a call raise in inference."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html

import inspect

import torch
from torch import nn

if "batch_first" not in inspect.signature(nn.TransformerEncoderLayer).parameters:
    raise SystemExit(3)

layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
x, mask = torch.ones(2, 3, 4), torch.zeros(3, 3, dtype=torch.float64)


def raised():
    try:
        with torch.no_grad():
            layer(x, src_mask=mask)
    except RuntimeError as error:
        return str(error)
    return None


control = raised()
layer.register_forward_hook(lambda module, args, output: None)
experiment = raised()
print("without the hook:", control)
print("with the hook:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control else 1 if experiment else 0)
