# /// script
# dependencies = ["torch"]
# ///
"""A hook of a weight is silently lost where a norm of its layer is removed."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.remove_spectral_norm.html

import torch
from torch import nn
from torch.nn.utils import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm


def calls(*changes):
    layer, seen = nn.Linear(2, 2), []
    layer.weight.register_hook(seen.append)
    for change in changes:
        change(layer)
    layer(torch.ones(1, 2)).sum().backward()
    return len(seen)


control = calls(), calls(spectral_norm)
removed = calls(spectral_norm, remove_spectral_norm), calls(weight_norm, remove_weight_norm)
print("without a norm, and under spectral_norm:           ", control)
print("after remove_spectral_norm, and remove_weight_norm:", removed)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != (1, 1) else 0 if removed == (1, 1) else 1)
