# /// script
# dependencies = ["torch"]
# ///
"""A post-accumulate-grad hook that refers to its tensor: the garbage collector frees neither."""

import gc
import weakref

import torch

if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
    raise SystemExit(3)


def run(register):
    parameter = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=0.1)

    def hook(given):
        optimizer.zero_grad()  # refers to the optimizer, which refers to the parameter

    getattr(parameter, register)(hook)
    return weakref.ref(optimizer)


control = run("register_hook")
gc.collect()
print("register_hook, freed:", control() is None)
if control() is not None:
    raise SystemExit(2)  # the control fails
experiment = run("register_post_accumulate_grad_hook")
gc.collect()
freed = experiment() is None
print("register_post_accumulate_grad_hook, freed:", freed)
raise SystemExit(0 if freed else 1)
