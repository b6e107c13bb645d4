# /// script
# dependencies = ["torch"]
# ///
"""A hook on the result of a compiled function runs before the one that the function registered."""
# https://docs.pytorch.org/docs/stable/notes/autograd.html#backward-hooks-execution

import torch

if not hasattr(torch, "compile") or not hasattr(torch, "compiler"):
    raise SystemExit(3)


def double(x):
    y = 2 * x
    y.register_hook(lambda grad: grad + 1)
    return y


def gradient(function):
    x = torch.tensor(1.0, requires_grad=True)
    y = function(x)
    y.register_hook(lambda grad: 10 * grad)
    (3 * y).backward()
    return x.grad.item()


control = gradient(double)
experiment = gradient(torch.compile(double, backend="aot_eager"))
print("eager:   ", control)
print("compiled:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != (3 + 1) * 10 * 2 else 0 if experiment == control else 1)
