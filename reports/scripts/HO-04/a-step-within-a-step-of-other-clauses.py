# torch 2.15.0: hookcheck repro HO-04
# /// script
# dependencies = ["torch"]
# ///
"""with super().step(): A step pre-hook is called as ``(optimizer, args, kwargs)`` before …"""

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
        raise SystemExit(2 if name == "the optimizer is given" else 1)


parameter = nn.Parameter(torch.tensor([1.0]))
parameter.grad = torch.tensor([2.0])
first_steps_optimizer = torch.optim.SGD([parameter], lr=0.25)


class Calling(type(first_steps_optimizer)):
    def step(self, closure=None):
        return super().step(closure)


optimizer = Calling(first_steps_optimizer.param_groups, **first_steps_optimizer.defaults)
closure = partial(torch.tensor, 7.0)
log = []
given = []


def seen(optimizer, args, kwargs):
    log.append(("first", parameter.item()))
    given.append((optimizer, args, kwargs, torch.is_grad_enabled()))


optimizer.register_step_pre_hook(seen)
optimizer.register_step_pre_hook(
    lambda optimizer, args, kwargs: log.append(("second", parameter.item()))
)
optimizer.step()
optimizer.step(closure=closure)
check("the optimizer is given", bool(given[0][0] is optimizer), True)
check(
    "hooks, with the parameter",
    list(log),
    [("first", 1), ("second", 1), ("first", 0.5), ("second", 0.5)],
)
