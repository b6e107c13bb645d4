# /// script
# dependencies = ["torch"]
# ///
"""retain_grad and autograd.grad give a compiled result's gradient from before its hook."""
# https://docs.pytorch.org/docs/stable/notes/autograd.html#backward-hooks-execution

import torch

if not hasattr(torch, "compile") or not hasattr(torch, "compiler"):
    raise SystemExit(3)


def double(x):
    y = 2 * x
    y.register_hook(lambda grad: 10 * grad)
    return y


def gradients(function):
    x = torch.tensor(1.0, requires_grad=True)
    y = function(x)
    y.retain_grad()
    (3 * y).backward()
    retained = y.grad.item()
    y = function(x)
    (asked,) = torch.autograd.grad(3 * y, y)
    return {"x.grad": x.grad.item(), "y.grad": retained, "autograd.grad": asked.item()}


control = gradients(double)
experiment = gradients(torch.compile(double, backend="aot_eager"))
print("eager:   ", control)
print("compiled:", experiment)
if control != {"x.grad": 60, "y.grad": 30, "autograd.grad": 30}:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment == control else 1)
