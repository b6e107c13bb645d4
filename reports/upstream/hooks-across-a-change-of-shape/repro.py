# /// script
# dependencies = ["torch"]
# ///
"""A hook registered after y.t_() gets the gradient of the old shape, if another hook was there."""
# https://docs.pytorch.org/docs/stable/notes/autograd.html

import torch


def shapes(before):
    seen = []
    y = 1 * torch.ones(2, 3, requires_grad=True)
    if before:
        y.register_hook(lambda grad: None)
        y.retain_grad()
    y.t_()
    y.register_hook(lambda grad: seen.append(tuple(grad.shape)))
    y.retain_grad()
    y.sum().backward()
    return [*seen, tuple(y.grad.shape)]


control, experiment = shapes(before=False), shapes(before=True)
print("gradient in the hook after t_(), and y.grad; y has the shape (3, 2)")
print("control, nothing registered before:                ", control)
print("experiment, another hook and retain_grad before it:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [(3, 2), (3, 2)] else 0 if experiment == control else 1)
