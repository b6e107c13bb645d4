# torch 2.13.0: hookcheck repro HO-04
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


def check(name, observed, expected):
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
given = []


def seen(optimizer, args, kwargs):
    given.append((optimizer, args, kwargs, torch.is_grad_enabled()))


optimizer.register_step_pre_hook(seen)
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: None)
optimizer.step()
optimizer.step(closure=closure)
check("the optimizer is given", bool(given[0][0] is optimizer), True)
check("kwargs of a step with a closure", bool(given[1][2] == {"closure": closure}), True)
