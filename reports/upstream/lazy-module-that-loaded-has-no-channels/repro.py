# /// script
# dependencies = ["torch"]
# ///
"""A lazy module that loads a state before its first call keeps 0 for its size."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.modules.lazy.LazyModuleMixin.html

import torch
from torch import nn

if not hasattr(nn, "LazyInstanceNorm2d"):
    raise SystemExit(3)

image = torch.arange(24.0).view(2, 3, 2, 2)


def run(make, size):
    called, loaded = make(), make()
    called(image)
    loaded.load_state_dict(called.state_dict())
    try:
        loaded(image)
    except ValueError as error:
        return str(error)
    return getattr(loaded, size)


control = run(lambda: nn.Conv2d(3, 2, 1), "in_channels")
convolution = run(lambda: nn.LazyConv2d(2, 1), "in_channels")
normalisation = run(lambda: nn.LazyInstanceNorm2d(affine=True), "num_features")
print("control:      ", control)
print("convolution:  ", convolution)
print("normalisation:", normalisation)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 3 else 0 if convolution == normalisation == 3 else 1)
