# /// script
# dependencies = ["torch"]
# ///
"""torch.save warns that it drops the hooks of a tensor, and drops a Parameter's silently."""
# https://docs.pytorch.org/docs/stable/generated/torch.save.html

import io
import warnings

import torch
from torch import nn


def warned(tensor):
    tensor.register_hook(lambda grad: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.save(tensor, io.BytesIO())
    return any("will not be serialized" in str(warning.message) for warning in caught)


control = warned(torch.ones(1, requires_grad=True))
experiment = warned(nn.Parameter(torch.ones(1)))
print("a tensor with a hook, a warning:   ", control)
print("a Parameter with a hook, a warning:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if not control else 0 if experiment == control else 1)
