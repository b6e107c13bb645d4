# /// script
# dependencies = ["torch"]
# ///
"""fuse_conv_bn_eval keeps the hooks of the convolution and drops those of the normalisation."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.fuse_conv_bn_eval.html

import torch
from torch import nn
from torch.nn.utils import fuse_conv_bn_eval

calls = []
conv, norm = nn.Conv2d(1, 1, 1).eval(), nn.BatchNorm2d(1).eval()
conv.register_forward_hook(lambda module, args, output: calls.append("convolution"))
norm.register_forward_hook(lambda module, args, output: calls.append("normalisation"))
x = torch.ones(1, 1, 2, 2)

norm(conv(x))
control, calls[:] = list(calls), []

try:
    fuse_conv_bn_eval(conv, norm)(x)
except RuntimeError as error:  # to refuse hooked modules would be as good as to keep the hooks
    raise SystemExit(0) from error
print("control:   ", control)
print("experiment:", calls)
if control != ["convolution", "normalisation"]:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if "normalisation" in calls else 1)
