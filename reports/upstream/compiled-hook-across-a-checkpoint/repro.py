# /// script
# dependencies = ["torch"]
# ///
"""Compiled code raises where a checkpointed region puts a hook on its input that uses a result."""
# https://docs.pytorch.org/docs/stable/checkpoint.html

import torch
from torch.utils.checkpoint import checkpoint

if not hasattr(torch, "compile") or not hasattr(torch, "compiler"):
    raise SystemExit(3)


def region(y):
    z = y.detach() + 1
    y.register_hook(lambda grad: grad + 0 * z)
    return y * y


def checkpointed(x):
    return checkpoint(region, 2 * x, use_reentrant=False)


def gradient(function):
    x = torch.tensor(1.0, requires_grad=True)
    try:
        function(x).backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return x.grad.item()


control = gradient(checkpointed)
experiment = gradient(torch.compile(checkpointed, backend="aot_eager"))
print("eager:   ", control)
print("compiled:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 2 * 2 * 2 else 0 if experiment == control else 1)
