# torch 2.15.0: hookcheck repro HO-04
# /// script
# dependencies = ["torch"]
# ///
"""with super().step(): A step pre-hook is called as ``(optimizer, args, kwargs)`` before every
step: parameters are what they were."""

from functools import partial

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def plain(value):
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return float(f"{value:.5g}") if type(value) in (int, float) else value


def check(name, observed, expected):
    observed, expected = plain(observed), plain(expected)
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(2 if name == "without Calling" else 1)


for experiment in (False, True):
    parameter = nn.Parameter(torch.tensor([1.0]))
    parameter.grad = torch.tensor([2.0])
    first_steps_optimizer = torch.optim.SGD([parameter], lr=0.25)

    class Calling(type(first_steps_optimizer)):
        def step(self, closure=None):
            return super().step(closure)

    if experiment:
        optimizer = Calling(first_steps_optimizer.param_groups, **first_steps_optimizer.defaults)
    else:
        optimizer = first_steps_optimizer
    closure = partial(torch.tensor, 7.0)
    log = []

    def seen(optimizer, args, kwargs):
        log.append(("first", parameter.item()))
        torch.is_grad_enabled()

    optimizer.register_step_pre_hook(seen)
    optimizer.register_step_pre_hook(
        lambda optimizer, args, kwargs: log.append(("second", parameter.item()))
    )
    optimizer.step()
    optimizer.step(closure=closure)
    name = "hooks, with the parameter" if experiment else "without Calling"
    check(name, list(log), [("first", 1), ("second", 1), ("first", 0.5), ("second", 0.5)])
